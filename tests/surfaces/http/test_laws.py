"""Laws that hold for whatever comes."""

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.core import errors as core_errors
from toolcrib.core.errors import RateLimitedError, ToolcribError
from toolcrib.core.masking import without_secrets
from toolcrib.surfaces.http import errors as http_errors
from toolcrib.surfaces.http.limits import RateLimit


def refused(limit: RateLimit) -> RateLimitedError | None:
    try:
        limit.take("a")
    except RateLimitedError as error:
        return error
    return None


@given(st.floats(0.1, 100), st.integers(1, 50), st.lists(st.floats(0, 5), max_size=100))
def test_nobody_gets_more_than_the_rate_and_the_burst(rate: float, burst: int, waits: list[float]) -> None:
    now = 0.0
    limit = RateLimit(rate, burst, lambda: now)
    admitted = 0
    for wait in waits:
        now += wait
        refusal = refused(limit)
        admitted += refusal is None
        assert refusal is None or 0 < refusal.seconds <= 1 / rate + 1e-6
    assert admitted <= burst + now * rate + 1e-6


@given(st.lists(st.integers(0, 30), max_size=200))
def test_few_callers_are_remembered(keys: list[int]) -> None:
    limit = RateLimit(1, 1000, lambda: 0.0, capacity=5)
    for key in keys:
        limit.take(str(key))
        assert limit.remembered <= 5


def tree(kind: type[ToolcribError]) -> set[type[ToolcribError]]:
    return {kind}.union(*(tree(below) for below in kind.__subclasses__()))


def test_every_error_has_its_own_row() -> None:
    named = {
        kind
        for module in (core_errors, http_errors)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, ToolcribError)
    }
    assert all("answer" in vars(kind) and "code" in vars(kind) for kind in named)
    codes = [kind.code for kind in named]
    assert len(codes) == len(set(codes))
    for kind in tree(ToolcribError):
        assert 400 <= kind.answer.http < 600
        assert kind.answer.exit in range(7)
        assert kind.answer.rpc < 0


def test_logs_keep_secrets() -> None:
    token = "tcrib_" + "a" * 43
    for text in (
        f"x {token} y",
        f"Authorization: Bearer {token}",
        "Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc",
        "mongodb://u:pass@h/d",
        "mongodb://u:p@pass@h/d",
    ):
        shown = without_secrets(text)
        assert token not in shown
        assert "eyJ" not in shown
        assert "pass" not in shown
    assert without_secrets("GET /tools/a 200") == "GET /tools/a 200"
