"""The wrapper that remembers."""

import pytest

from toolcrib.adapters.policies.caching import CachingPolicy
from toolcrib.core.errors import PolicyUnavailableError
from toolcrib.ports import Decision, PolicyRequest


class Counting:
    remote = True

    def __init__(self) -> None:
        self.asked = 0
        self.away = False

    def decide(self, request: PolicyRequest) -> Decision:
        self.asked += 1
        if self.away:
            raise PolicyUnavailableError("away")
        return Decision(self.asked % 2 == 1, f"answer {self.asked}")


def request(principal: str = "ada", digest: str = "d1") -> PolicyRequest:
    return PolicyRequest(principal, "run", "hammer", {}, digest)


def test_the_same_question_is_asked_once_until_the_time_is_up() -> None:
    now = [0.0]
    inner = Counting()
    policy = CachingPolicy(inner, seconds=10, clock=lambda: now[0])
    assert policy.remote
    assert policy.decide(request()) == policy.decide(request()) == Decision(True, "answer 1")
    now[0] = 10
    assert policy.decide(request()) == Decision(False, "answer 2")
    policy.clear()
    assert policy.decide(request()) == Decision(True, "answer 3")


def test_another_principal_and_another_digest_are_other_questions() -> None:
    inner = Counting()
    policy = CachingPolicy(inner)
    for asked in (request(), request(principal="bob"), request(digest="d2")):
        policy.decide(asked)
    assert inner.asked == 3


def test_without_a_digest_nothing_is_kept() -> None:
    inner = Counting()
    policy = CachingPolicy(inner)
    policy.decide(request(digest=""))
    policy.decide(request(digest=""))
    assert inner.asked == 2


def test_a_failure_is_not_remembered() -> None:
    inner = Counting()
    inner.away = True
    policy = CachingPolicy(inner)
    with pytest.raises(PolicyUnavailableError):
        policy.decide(request())
    inner.away = False
    assert policy.decide(request()).reason == "answer 2"


def test_the_oldest_decision_goes_when_there_are_too_many() -> None:
    inner = Counting()
    policy = CachingPolicy(inner, size=2)
    for digest in ("a", "b", "c", "b", "c", "a"):
        policy.decide(request(digest=digest))
    assert inner.asked == 4
