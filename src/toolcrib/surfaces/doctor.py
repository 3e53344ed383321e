"""``toolcrib doctor``: does the service have everything that it needs, and does it work?"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from toolcrib.bootstrap import System, make_folder, open_sandbox, open_system, try_writing
from toolcrib.catalogue import Catalogue
from toolcrib.core.addresses import is_loopback
from toolcrib.core.errors import ToolcribError
from toolcrib.core.masking import without_secrets
from toolcrib.settings import Settings
from toolcrib.surfaces.http.gate import Access
from toolcrib.surfaces.wording import counted

Health = Literal["ok", "warning", "failed"]
_LITTLE_SPACE = 1 << 30
_MANY_WAITING = 100


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; ``detail`` says what was found, and what to do if it is not well."""

    name: str
    health: Health
    detail: str


def doctor(settings: Settings) -> list[Check]:
    """Every check, in order. None of them raises, and none changes anything that lasts."""
    with open_system(settings) as system:
        checks = [_checked("python", _python), _checked("data folder", lambda: _data_folder(settings))]
        checks += _of_catalogue(system)
        checks.append(_checked("blobs", lambda: _blobs(system)))
        checks.append(_checked("bundles", lambda: _bundles(settings)))
        checks.append(_checked("access", lambda: _access(system)))
    return checks


def _checked(name: str, look: Callable[[], tuple[Health, str]]) -> Check:
    try:
        return Check(name, *look())
    except (ToolcribError, OSError) as error:
        return Check(name, "failed", str(error))


def _python() -> tuple[Health, str]:
    return "ok", f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"


def _data_folder(settings: Settings) -> tuple[Health, str]:
    folder = settings.data_folder
    make_folder(folder)
    try_writing(folder)
    free = shutil.disk_usage(folder).free
    health: Health = "warning" if free < _LITTLE_SPACE else "ok"
    return health, f"{folder} is writable, {free / (1 << 30):.1f} GiB free"


def _of_catalogue(system: System) -> list[Check]:
    try:
        catalogue = system.catalogue
    except (ToolcribError, OSError) as error:
        return [Check("store", "failed", str(error))]
    return [
        _checked("store", lambda: _store(catalogue, system.settings)),
        _checked("audit", lambda: _audit(catalogue)),
        _checked("credentials", lambda: _credentials(catalogue)),
        _checked("policy", lambda: ("ok", system.settings.policy)),
        _checked("outbox", lambda: _outbox(catalogue)),
    ]


def _store(catalogue: Catalogue, settings: Settings) -> tuple[Health, str]:
    catalogue.store.ping()
    return "ok", f"{without_secrets(settings.store_url)} holds {counted(len(catalogue), 'tool')}"


def _audit(catalogue: Catalogue) -> tuple[Health, str]:
    if catalogue.audit is None:
        return "warning", "no audit is kept"
    return "ok", "kept"


def _credentials(catalogue: Catalogue) -> tuple[Health, str]:
    """The first sealed record, if one is among the first tools, must open."""
    for entry in catalogue.query(limit=1000).entries:
        if entry.document["credentials"]:
            catalogue.credentials(entry.name)
            return "ok", f"those of {entry.name!r} open with the configured keys"
    return "ok", "none are kept by the first thousand tools"


def _outbox(catalogue: Catalogue) -> tuple[Health, str]:
    waiting = catalogue.store.outbox(limit=1000)
    if not waiting:
        return "ok", "nothing waits"
    error = next((entry.last_error for entry in waiting if entry.last_error), "")
    health: Health = "warning" if error or len(waiting) >= _MANY_WAITING else "ok"
    events = counted(len(waiting), "event")
    return health, f"{events} to be delivered{f'; the last error was: {error}' if error else ''}"


def _blobs(system: System) -> tuple[Health, str]:
    blobs, where = system.blobs, without_secrets(system.settings.blobs_url)
    blobs.ping()
    return "ok", f"{where} can be written and read"


def _bundles(settings: Settings) -> tuple[Health, str]:
    if not settings.run_bundles:
        return "ok", "do not run here"
    walled, sentence = open_sandbox(settings).told()
    return "ok" if walled else "warning", sentence


def _access(system: System) -> tuple[Health, str]:
    settings = system.settings
    access, jwts = Access.of(settings, system.tokens), system.bearer
    tokens = counted(len(system.tokens.all()), "token")
    if access.open_to_local:
        return "ok", f"bound to {settings.host}: open to every program of this machine, closed to all others"
    if not is_loopback(settings.host) and not settings.public_url.startswith("https://"):
        return "warning", f"{tokens}; set public_url to the https address of the proxy in front"
    return "ok", f"credentials are required; {tokens}{', and JWTs' if jwts else ''}"
