"""The policy service at the other end of a wire, with every way in which it can fail to answer."""

import json
import threading
from collections.abc import Iterator

import pytest
from tests.support.receiver import Answer, Received, Receiver, receiving

from toolcrib.adapters.policies.webhook import WebhookPolicy
from toolcrib.adapters.signing import sign, verify
from toolcrib.core.errors import PolicyUnavailableError, SettingsError
from toolcrib.ports import Decision, PolicyRequest

REQUEST = PolicyRequest("ada", "create", "hammer", {"name": "hammer", "tags": ["é"]}, "d1")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def answering(status: int, body: bytes, **headers: str) -> Answer:
    return status, headers, body


def test_it_asks_and_believes(receiver: Receiver) -> None:
    policy = WebhookPolicy(f"{receiver.url}/may", secret="s3cret")
    receiver.answer = lambda _: answering(200, b'{"allow": true, "reason": "because"}')
    assert policy.decide(REQUEST) == Decision(True, "because", "webhook")
    receiver.answer = lambda _: answering(200, b'{"allow": false, "reason": "closed on Mondays"}')
    assert policy.decide(REQUEST) == Decision(False, "closed on Mondays", "webhook")
    asked = receiver.received[0]
    assert asked.path == "/may"
    assert json.loads(asked.body) == {
        "principal": "ada", "roles": [], "action": "create", "tool": "hammer", "digest": "d1",
        "spec": {"name": "hammer", "tags": ["é"]},
    }  # fmt: skip
    assert verify("s3cret", asked.body, asked.headers["toolcrib-signature"], now=asked.at)
    policy.close()


def test_signatures_hold_for_one_body_one_secret_and_a_while() -> None:
    signature = sign("s", b"body", at=1000)
    assert verify("s", b"body", signature, now=1000)
    assert verify("s", b"body", signature, now=1300)
    assert not verify("s", b"body", signature, now=1301)
    assert not verify("s", b"other", signature, now=1000)
    assert not verify("other", b"body", signature, now=1000)
    assert not verify("s", b"body", signature.replace("t=1000", "t=1200"), now=1200)
    for nonsense in ("", "t=,v1=", "v1=abc", "t=x,v1=abc", "t=1000", "t=²,v1=é"):
        assert not verify("s", b"body", nonsense, now=1000)


@pytest.mark.parametrize(
    "answer",
    [
        answering(500, b"oops"),
        answering(403, b'{"allow": false}'),
        answering(302, b"", Location="http://127.0.0.1:1/"),
        answering(200, b"yes"),
        answering(200, b""),
        answering(200, b"[]"),
        answering(200, b'{"allow": "true"}'),
        answering(200, b'{"allow": 1}'),
        answering(200, b'{"reason": "none"}'),
        answering(200, b"[" * 60_000),
        answering(200, b'{"allow": true, "reason": "' + b"x" * 100_000 + b'"}'),
    ],
)
def test_anything_but_an_answer_means_nobody_was_asked(receiver: Receiver, answer: Answer) -> None:
    receiver.answer = lambda _: answer
    policy = WebhookPolicy(receiver.url)
    with pytest.raises(PolicyUnavailableError):
        policy.decide(REQUEST)
    assert len(receiver.received) == 1
    policy.close()


def test_a_service_that_does_not_answer_is_unavailable(receiver: Receiver) -> None:
    over = threading.Event()

    def never(request: Received) -> Answer:
        over.wait()
        return answering(200, b'{"allow": true}')

    receiver.answer = never
    policy = WebhookPolicy(receiver.url, seconds=0.2)
    with pytest.raises(PolicyUnavailableError, match=r"did not answer within 0\.2 s"):
        policy.decide(REQUEST)
    over.set()
    policy.close()


def test_unreachable_is_refused_unless_configured_open() -> None:
    with receiving() as receiver:
        url = receiver.url
    closed, opened = WebhookPolicy(url), WebhookPolicy(url, fail_open=True)
    with pytest.raises(PolicyUnavailableError, match="could not be asked"):
        closed.decide(REQUEST)
    assert opened.decide(REQUEST).allow
    assert opened.decide(REQUEST).rule == "webhook:open"
    closed.close()
    opened.close()


def test_a_no_stays_a_no_when_configured_open(receiver: Receiver) -> None:
    receiver.answer = lambda _: answering(200, b'{"allow": false, "reason": "no"}')
    policy = WebhookPolicy(receiver.url, fail_open=True)
    assert not policy.decide(REQUEST).allow
    policy.close()


def test_a_wrong_address_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="the policy webhook"):
        WebhookPolicy("ftp://policy")


def test_a_service_says_which_rules_it_does_not_know(receiver: Receiver) -> None:
    policy = WebhookPolicy(receiver.url)
    spec = {"name": "hammer", "policy_rule_uri": "policies://a", "validation_policy_rule_uri": "policies://b"}
    request = PolicyRequest("ada", "create", "hammer", spec, "d1")
    for said, unserved in (
        ('["policies://b", "policies://others", 3]', ("policies://b",)),
        ("[]", ()),
        ('"policies://a"', ()),
        ("null", ()),
    ):
        body = f'{{"allow": true, "unknown_rules": {said}}}'.encode()
        receiver.answer = lambda _, body=body: answering(200, body)  # type: ignore[misc]
        assert policy.decide(request).unserved == unserved
    policy.close()
