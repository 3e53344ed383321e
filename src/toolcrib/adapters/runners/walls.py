"""Which walls stand around a bundle: what the kernel lets us build here, found out by building it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.core.errors import DeniedError, UnavailableError

Isolation = Literal["full", "weak"]
RULE = "bundle_isolation"

NEEDED = ("user", "mount", "process", "network", "ipc")
"""Without these a bundle runs only where the setting ``bundle_isolation`` says ``weak``."""
WALLS = (*NEEDED, "landlock", "seccomp", "cgroup")
"""All there are."""

_WAYS_OUT = {
    "user": "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0; in a container a seccomp profile that permits unshare)",
    "mount": "it needs Linux 5.12 and, in a container, a seccomp profile that permits mount",
}


class WallDownError(UnavailableError):
    """A wall could not be built, so nothing was run."""

    def __init__(self, wall: str, reason: str) -> None:
        super().__init__(f"the {wall} wall cannot be built: {reason}")
        self.wall = wall
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Walls:
    """``standing`` are those that are built; ``missing`` says of each other one why it cannot be."""

    standing: tuple[str, ...]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def lacking(self) -> str:
        """The first wall that a run needs and that is missing; empty if there is none."""
        return next((wall for wall in NEEDED if wall not in self.standing), "")

    @property
    def facts(self) -> dict[str, list[str]]:
        """What the result of a run says."""
        return {"walls": list(self.standing)}

    def __str__(self) -> str:
        stand = ", ".join(self.standing) or "none"
        missing = ", ".join(f"{wall} ({reason})" for wall, reason in self.missing.items())
        return f"{stand}{f'; missing: {missing}' if missing else ''}"


def refusal(walls: Walls) -> DeniedError:
    """Why bundles do not run here, and what to do."""
    wall = walls.lacking
    way = _WAYS_OUT.get(wall, "the kernel must allow this namespace")
    error = DeniedError(
        f"bundles do not run here: the {wall} wall cannot be built: {walls.missing.get(wall, 'unknown')}; {way}, "
        "or accept weaker isolation with TOOLCRIB_BUNDLE_ISOLATION=weak",
        rule=RULE,
    )
    error.facts = walls.facts
    return error
