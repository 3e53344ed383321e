"""What can be said about a pipeline before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolcrib.core.errors import IncompatibleError, ToolcribError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import StackReport, check
from toolcrib.stacking.brick import AnyBrick
from toolcrib.stacking.items import Request

START = "the start"


@dataclass(frozen=True, slots=True)
class Joint:
    """Where two steps meet: what the one gives and what the other takes."""

    left: str
    right: str
    gives: str
    takes: str
    fits: bool


@dataclass(frozen=True, slots=True)
class PipelineReport:
    """The pair table, the joints, and what is missing: packages and keys. ``ok`` if a run may begin."""

    name: str
    tools: tuple[str, ...]
    stack: StackReport
    joints: tuple[Joint, ...]
    errors: tuple[ToolcribError, ...]

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(str(error) for error in self.errors)

    def raise_first(self) -> None:
        if self.errors:
            raise self.errors[0]


def check_bricks(
    name: str,
    bricks: Sequence[AnyBrick],
    substitutes: Sequence[AnyBrick],
    kept: Mapping[str, ToolSpec] | None,
    *,
    strict: bool,
) -> PipelineReport:
    """Judge a row of bricks and their substitutes.

    With ``kept``, those of the tools that a catalogue has, they stack as it says; without it, as they say themselves.
    """
    specs = {brick.spec.name: brick.spec for brick in (*bricks, *substitutes)} | dict(kept or {})
    stack = check([specs[brick.spec.name] for brick in bricks], strict=strict)
    joints = _joints(bricks)
    errors = [] if kept is None else _entry_errors([*bricks, *substitutes], kept)
    errors += [
        IncompatibleError(f"{verdict.left!r} and {verdict.right!r} do not stack ({verdict.rule}): {verdict.reason}")
        for verdict in stack.conflicts
    ]
    errors += [_mismatch(joint) for joint in joints if not joint.fits]
    for substitute in substitutes:
        errors += _substitute_errors(substitute, bricks, specs, strict)
    missing = (error for brick in (*bricks, *substitutes) for error in brick.missing())
    errors += {str(error): error for error in missing}.values()  # two bricks may need the same key
    return PipelineReport(name, tuple(brick.spec.name for brick in bricks), stack, joints, tuple(errors))


def stands_in(substitute: AnyBrick | type[AnyBrick], brick: AnyBrick | type[AnyBrick]) -> bool:
    """Whether the one can do the other's work: it takes as much and gives nothing else."""
    return issubclass(brick.takes, substitute.takes) and issubclass(substitute.gives, brick.gives)


def _entry_errors(bricks: Sequence[AnyBrick], kept: Mapping[str, ToolSpec]) -> list[ToolcribError]:
    """What a catalogue has against the bricks: it does not know one, or says another mode of it."""
    by_name = {brick.spec.name: brick for brick in bricks}
    errors: list[ToolcribError] = []
    if unknown := [repr(name) for name in by_name if name not in kept]:
        errors.append(
            IncompatibleError(
                f"{' and '.join(unknown)} {'are' if len(unknown) > 1 else 'is'} not in the catalogue "
                "(not_in_catalogue); 'tools add -f FILE' adds a tool, 'tools add --samples' those that come along"
            )
        )
    for name, brick in by_name.items():
        said = kept[name].execution_mode if name in kept else ""
        if said in ("sync", "async") and said != brick.execution_mode:
            errors.append(
                IncompatibleError(
                    f"the catalogue says that {name!r} is {said}, but its brick is {brick.execution_mode} "
                    "(execution_mode); correct its entry"
                )
            )
    return errors


def _joints(bricks: Sequence[AnyBrick]) -> tuple[Joint, ...]:
    given: list[tuple[str, type]] = [(START, Request), *((brick.spec.name, brick.gives) for brick in bricks)]
    return tuple(
        Joint(left, brick.spec.name, gives.__name__, brick.takes.__name__, issubclass(gives, brick.takes))
        for (left, gives), brick in zip(given, bricks, strict=False)
    )


def _mismatch(joint: Joint) -> IncompatibleError:
    left = "a pipeline begins with" if joint.left == START else f"{joint.left!r} gives"
    return IncompatibleError(f"{left} a {joint.gives}, but {joint.right!r} takes a {joint.takes}")


def _substitute_errors(
    substitute: AnyBrick, bricks: Sequence[AnyBrick], specs: Mapping[str, ToolSpec], strict: bool
) -> list[ToolcribError]:
    """A substitute replaces a step, so it must fit the others, not the one it replaces."""
    replaced = [brick for brick in bricks if stands_in(substitute, brick)]
    if not replaced:
        shape = f"takes a {substitute.takes.__name__} and gives a {substitute.gives.__name__}"
        return [IncompatibleError(f"{substitute.spec.name!r} {shape}, as no step does, so it cannot stand in for one")]
    errors: list[ToolcribError] = []
    for place in replaced:
        others = [brick for brick in bricks if brick is not place]
        report = check([specs[brick.spec.name] for brick in (substitute, *others)], strict=strict)
        own = [verdict for verdict in report.conflicts if substitute.spec.name in (verdict.left, verdict.right)]
        errors += [
            IncompatibleError(
                f"{substitute.spec.name!r} cannot stand in for {place.spec.name!r} ({verdict.rule}): {verdict.reason}"
            )
            for verdict in own
        ]
    return errors
