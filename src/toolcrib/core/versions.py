"""Version numbers, and what an update of a tool owes its callers."""

from __future__ import annotations

import re
from typing import NamedTuple

from toolcrib.core.evolution import breaking_changes
from toolcrib.core.spec import ToolSpec

_VERSION = re.compile(r"v?(\d{1,18})(?:\.(\d{1,18}))?(?:\.(\d{1,18}))?(?:-([0-9A-Za-z.-]+))?(?:\+.*)?", re.IGNORECASE)


class Version(NamedTuple):
    """A semantic version; compares as semver says, so 10.0.0 comes after 9.0.0 and 1.0.0-rc.1 before 1.0.0."""

    major: int = 0
    minor: int = 0
    patch: int = 0
    stage: tuple[tuple[int, int, str], ...] = ((2, 0, ""),)


def parse_version(text: str) -> Version:
    """``1.2.3``, ``v1.2`` or ``2`` as a version; anything else, the empty string too, is older than every number."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return Version()
    major, minor, patch, stage = match.groups()
    numbers = (int(major), int(minor or 0), int(patch or 0))
    if not stage:
        return Version(*numbers)
    parts = ((0, int(part), "") if part.isdigit() and len(part) < 19 else (1, 0, part) for part in stage.split("."))
    return Version(*numbers, tuple(parts))


def raises_major(old: str, new: str) -> bool:
    """Whether the version says that callers must look: a higher major number."""
    return parse_version(new).major > parse_version(old).major


def broken_by(old: ToolSpec, new: ToolSpec) -> list[str]:
    """What the update would break for callers, in words; nothing if the new version's major number is higher."""
    if raises_major(old.version, new.version):
        return []
    return breaking_changes(old.parameters, new.parameters)
