"""What must not be shown, and what may."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from toolcrib.calling.recording import Recorder, recorded
from toolcrib.core.errors import ToolcribError
from toolcrib.core.json import MASK
from toolcrib.core.masking import REDACTION, Redaction, without_marked, without_secrets
from toolcrib.ports import AuditEvent


@pytest.mark.parametrize(
    "name",
    ["password", "PASSWORD", "user_password", "githubToken", "X-API-Key", "apiKey", "APIKey", "api.key", "Set-Cookie"],
)
def test_names_of_secrets(name: str) -> None:
    assert REDACTION({name: {"a": [1]}}) == {name: MASK}


@pytest.mark.parametrize("name", ["max_tokens", "author", "keyboard", "passport", "secretary", "monkey"])
def test_names_that_only_look_so(name: str) -> None:
    assert REDACTION({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("login failed for password=hunter2, try again", f"login failed for password={MASK}, try again"),
        ('{"api_key": "abc def", "a": 1}', f'{{"api_key": "{MASK}", "a": 1}}'),
        ("https://shop/?token=abc&page=2", f"https://shop/?token={MASK}&page=2"),
        ("postgres://me:pass@host/db", f"postgres://me:{MASK}@host/db"),
        ("Authorization: Bearer abc.def", f"Authorization: {MASK}"),
        ("Authorization: Token abc123\nHost: b", f"Authorization: {MASK}\nHost: b"),
        ("curl -H 'Authorization: token ghp_1' /a", f"curl -H 'Authorization: {MASK}' /a"),
        ("Set-Cookie: a=1; sid=2; Path=/", f"Set-Cookie: {MASK}"),
        ("next to authorization: 'Token abc', a", f"next to authorization: '{MASK}', a"),
        (r'{"password": "ab\"cd", "a": 1}', f'{{"password": "{MASK}", "a": 1}}'),
        (r'"{\"api_key\": \"abc\", \"a\": 1}"', rf'"{{\"api_key\": \"{MASK}\", \"a\": 1}}"'),
        (r'"{\"authorization\": \"Token abc\"}"', rf'"{{\"authorization\": \"{MASK}\"}}"'),
        ('what came was {"token": "abcdef gh', f'what came was {{"token": "{MASK}'),
        ("password is what you need", "password is what you need"),
        ("name=ann; page=2", "name=ann; page=2"),
        ("a=b=c password=", "a=b=c password="),
    ],
)
def test_secrets_in_texts(text: str, shown: str) -> None:
    assert REDACTION.text(text) == shown
    assert REDACTION([text]) == [shown]


def test_a_half_jwt_is_no_jwt() -> None:
    assert without_secrets("eyJhbGciOiJub25l.e30.") == MASK
    assert without_secrets("%20eyJhbGciOiJub25l.e30.x, eyJ") == f"%20{MASK}, eyJ"
    assert without_secrets("eyJhbGciOiJub25l eyJhbGciOiJub25l.e30") == "eyJhbGciOiJub25l eyJhbGciOiJub25l.e30"


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefgh1234567890_ABCD",
        "sk-ant-api03-abcdefghijk-lmnop",
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1_" * 20,
        "xoxb-123456789012-abcdef",
        "glpat-abcdefghij1234567890",
        "AIza" + "Sy-1" * 9,
        "AKIA" + "ABCD1234" * 2,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\nabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\\nMIIE cut",
    ],
)
def test_the_keys_of_providers_are_known_by_their_looks(key: str) -> None:
    assert without_secrets(f"it answered {key}") == f"it answered {MASK}"
    assert without_secrets(f"{key}\n").rstrip() == MASK
    assert without_secrets(f"x{key}") == f"x{key}" or key.startswith("-")


def test_what_stands_behind_a_private_key_is_shown() -> None:
    text = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY----- was refused"
    assert without_secrets(text) == f"{MASK} was refused"
    assert without_secrets('{"key": "-----BEGIN PRIVATE KEY-----\\\\nMIIE", "a": 1}') == f'{{"key": "{MASK}", "a": 1}}'


@pytest.mark.parametrize(
    "text", ["sk-learn-pipeline-for-beginners", "a risk-free-offer-of-the-year-2026", "ghp_", "AKIAs"]
)
def test_what_only_begins_like_a_key_is_shown(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("name", ["social_security_number_of_spouse", "пароль", "größe", "暗号"])
def test_names_that_a_user_gives_are_masked_whatever_they_are(name: str) -> None:
    assert Redaction([name])({name: "4711", "other": 1}) == {name: MASK, "other": 1}
    assert Redaction([name]).text(f"{name}=4711") == f"{name}={MASK}"


@pytest.mark.parametrize(
    "piece",
    ["eyJ", "eyJaaaaaaaa.", "eyJaaaaaaaa.b.", "a", "a-", "a=", "password=", "'password=\"", "\\", '"', "Bearer ",
     "tcrib_", "http://", "://a:", "sk-", "sk-1 ", " sk-a", "ghp_", "xoxb-", "AKIA",
     "-----BEGIN PRIVATE KEY-----", "-----END"],
)  # fmt: skip
def test_long_texts_are_masked_in_time_that_grows_with_them(piece: str) -> None:
    """If it grew with their square, this would not end in time."""
    assert REDACTION.text(piece * (1_000_000 // len(piece))) is not None


def test_pointers_and_patterns() -> None:
    mask = Redaction(names=(), patterns=[r"\d{4}-\d{4}"], pointers=["/cards/*/number", "/a~1b", "/deep"])
    value = {"cards": [{"number": 1, "kind": "x"}, {"number": 2}], "a/b": 3, "deep": {"all": 1}, "text": "is 1234-5678"}
    assert mask(value) == {
        "cards": [{"number": MASK, "kind": "x"}, {"number": MASK}], "a/b": MASK, "deep": MASK, "text": f"is {MASK}",
    }  # fmt: skip
    assert value["cards"] == [{"number": 1, "kind": "x"}, {"number": 2}]
    assert Redaction(names=(), pointers=[""])(value) == MASK


@pytest.mark.parametrize(
    "wrong", [{"pointers": ["card"]}, {"names": "password"}, {"patterns": "x"}, {"patterns": ["("]}]
)
def test_wrong_redactions_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, re.error)):
        Redaction(**wrong)


def test_a_value_that_is_nested_too_deep_is_not_shown() -> None:
    value: Any = {"password": "hunter2"}
    for _ in range(900):
        value = [value]
    assert "hunter2" not in repr(REDACTION(value))


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_value_can_be_masked_and_masking_twice_is_masking_once(value: Any) -> None:
    once = REDACTION(value)
    assert REDACTION(once) == once


@given(st.text(max_size=200))
def test_any_text_can_be_masked(text: str) -> None:
    assert isinstance(REDACTION.text(text), str)
    assert isinstance(without_secrets(text), str)


def test_what_goes_on_record_of_an_error_has_no_secrets() -> None:
    events: list[AuditEvent] = []

    class Kept:
        remote = False

        def record(self, *told: AuditEvent) -> None:
            events.extend(told)

    recorder = Recorder(Kept(), lambda: 1.0)
    with pytest.raises(ToolcribError), recorded(recorder, {"a": "update"}, "ann"):
        raise ToolcribError("cannot reach mongodb://me:hunter2@host")
    recorder.refuse("a", "run", "ann", "token tcrib_0123456789abcdef0123 is wrong")
    assert events[1].detail == f"cannot reach mongodb://me:{MASK}@host"
    assert events[3].detail == f"token {MASK} is wrong"


class Key(BaseModel):
    name: str
    value: SecretStr


class Keys(BaseModel):
    first: Key | None = None
    others: list[Key | SecretStr] = []
    by_name: dict[str, SecretStr] = {}
    pair: tuple[str, SecretStr] | None = None
    next: "Keys | None" = None


def test_what_a_schema_marks_as_a_secret_is_masked() -> None:
    key, shown = {"name": "a", "value": "hunter2"}, {"name": "a", "value": MASK}
    values = {"first": key, "others": [key, "hunter2"], "by_name": {"b": "hunter2"}, "pair": ["c", "hunter2"]}
    told = {"first": shown, "others": [MASK, MASK], "by_name": {"b": MASK}, "pair": ["c", MASK]}
    assert without_marked(Keys.model_json_schema(), values | {"next": values}) == told | {"next": told}
    assert without_marked({"anyOf": [{"$ref": "#"}], "oneOf": [True]}, {"a": [1]}) == {"a": [1]}
    deep: Any = "hunter2"
    for _ in range(100_000):
        deep = [deep]
    assert "hunter2" not in without_marked({"items": {"writeOnly": True}}, deep)
