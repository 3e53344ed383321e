"""The calls that a test expects beside those that were made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from toolcrib.core.comparing import differences
from toolcrib.core.errors import ToolValidationError, shown
from toolcrib.testing.recording import RecordedCall, RecordingRegistry
from toolcrib.testing.script import ScriptedCall

_WIDTH = 60
_Pair = tuple[ScriptedCall | str | None, RecordedCall | None]
_Fits = Callable[[int, int], bool]


def assert_calls(
    made: RecordingRegistry | Sequence[RecordedCall],
    expected: Sequence[ScriptedCall | str],
    *,
    in_order: bool = True,
    exact: bool = True,
) -> None:
    """AssertionError, with both lists side by side, unless the calls made are those expected.

        assert_calls(recorder, [call("weather", city="Paris"), call("book", nights=ANY)])

    Argument values may be what :func:`differences` takes: ANY, a type, a function, ``pytest.approx``. A name alone
    stands for a call of that tool with whatever arguments. ``in_order=False`` takes them in any order. With
    ``exact=False`` there may be other calls between, and other arguments beside those that are given.
    """
    __tracebackhide__ = True
    calls = _made(made)
    wanted: list[ScriptedCall | str] = [expected] if isinstance(expected, ScriptedCall | str) else list(expected)
    for each in wanted:
        if not isinstance(each, ScriptedCall | str):
            raise ToolValidationError(f"calls are expected, not {shown(each)}; write call('a_tool', argument='value')")

    @cache
    def fits(one: int, other: int) -> bool:
        return not _complaints(wanted[one], calls[other], exact)

    if len(wanted) == len(calls) and all(fits(place, place) for place in range(len(calls))):
        return
    pairs = (_aligned if in_order else _matched)(wanted, calls, fits, exact)
    lines = [line for pair in pairs for line in _told(*pair, exact)]
    if any(line.startswith(("- ", "+ ", "! ")) for line in lines):
        head = f"  {'expected':{_WIDTH}}  called"
        raise AssertionError("\n".join(["the calls are not those that are expected", head, *lines]))


def _made(recorded: Any) -> list[RecordedCall]:
    calls = recorded.calls if isinstance(recorded, RecordingRegistry) else recorded
    if not isinstance(calls, Sequence) or not all(isinstance(each, RecordedCall) for each in calls):
        raise ToolValidationError(f"{shown(recorded)} has recorded no calls; make a RecordingRegistry of the registry")
    return list(calls)


def _complaints(expected: ScriptedCall | str, made: RecordedCall, exact: bool) -> list[str]:
    """What is wrong with a call as the one expected."""
    if isinstance(expected, str):
        return [] if expected == made.name else [f"{made.name!r} is another tool"]
    if expected.name != made.name:
        return [f"{made.name!r} is another tool"]
    wanted, came = expected.arguments, made.arguments
    if not exact and isinstance(wanted, Mapping) and isinstance(came, Mapping):
        came = {name: came[name] for name in wanted if name in came}
    return differences(wanted, came)


def _aligned(expected: list[ScriptedCall | str], made: list[RecordedCall], fits: _Fits, exact: bool) -> Iterator[_Pair]:
    """Both in their order, with as few differences as can be: a call of the same name with others counts as one."""
    extra = 1 if exact else 0
    rows, columns = len(expected), len(made)
    cost = [[0] * (columns + 1) for _ in range(rows + 1)]  # of what is left from here on
    for one in range(rows, -1, -1):
        for other in range(columns, -1, -1):
            ways = []
            if one < rows and other < columns and _name(expected[one]) == made[other].name:
                ways.append(cost[one + 1][other + 1] + (0 if fits(one, other) else 1))
            if one < rows:
                ways.append(cost[one + 1][other] + 1)
            if other < columns:
                ways.append(cost[one][other + 1] + extra)
            cost[one][other] = min(ways, default=0)
    one = other = 0
    while one < rows or other < columns:
        left = cost[one][other]
        together = one < rows and other < columns and _name(expected[one]) == made[other].name
        if together and left == cost[one + 1][other + 1] + (0 if fits(one, other) else 1):
            yield expected[one], made[other]
            one, other = one + 1, other + 1
        elif one < rows and left == cost[one + 1][other] + 1:
            yield expected[one], None
            one += 1
        else:
            yield None, made[other]
            other += 1


def _matched(
    expected: list[ScriptedCall | str],
    made: list[RecordedCall],
    fits: _Fits,
    exact: bool,  # noqa: ARG001
) -> Iterator[_Pair]:
    """In any order: as many pairs that fit as can be, then those of the same name."""
    taken: dict[int, int] = {}  # of a call made, the one expected

    def place(one: int, tried: set[int]) -> bool:
        for other in range(len(made)):
            if fits(one, other) and other not in tried:
                tried.add(other)
                if other not in taken or place(taken[other], tried):
                    taken[other] = one
                    return True
        return False

    for one in range(len(expected)):
        place(one, set())
    partner = {one: other for other, one in taken.items()}
    for one, each in enumerate(expected):
        if one not in partner:
            alike = (n for n, call in enumerate(made) if n not in taken and call.name == _name(each))
            if (other := next(alike, None)) is not None:
                taken[other], partner[one] = one, other
        yield each, made[partner[one]] if one in partner else None
    yield from ((None, call) for other, call in enumerate(made) if other not in taken)


def _name(expected: ScriptedCall | str) -> str:
    return expected if isinstance(expected, str) else expected.name


def _told(expected: ScriptedCall | str | None, made: RecordedCall | None, exact: bool) -> list[str]:
    """The lines about a pair; the first sign of a line that is wrong is no space."""
    left = "" if expected is None else f"{expected}(...)" if isinstance(expected, str) else str(expected)
    right = "" if made is None else _shown(made)
    complaints = _complaints(expected, made, exact) if expected is not None and made is not None else []
    if made is None:
        sign, right = "-", "(not called)"
    elif expected is None:
        sign, left = "+" if exact else " ", "(not expected)" if exact else ""
    else:
        sign = "!" if complaints else " "
    return [f"{sign} {_cut(left):{_WIDTH}}  {_cut(right)}", *(f"      {complaint}" for complaint in complaints)]


def _shown(made: RecordedCall) -> str:
    if isinstance(made.arguments, Mapping):
        return str(ScriptedCall(made.name, made.arguments))
    return f"{made.name}(raw={made.arguments!r})"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
