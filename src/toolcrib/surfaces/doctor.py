"""``toolcrib doctor``: is everything there that the service needs, and does it work?"""

from __future__ import annotations

import io
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from toolcrib.bootstrap import open_blobs, open_catalogue, open_tokens
from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import ToolcribError
from toolcrib.settings import Settings
from toolcrib.surfaces.auth.origins import is_loopback
from toolcrib.surfaces.serve import access_of, bearer_of, shown

Health = Literal["ok", "warning", "failed"]
_LITTLE_SPACE = 1 << 30
_MANY_WAITING = 100


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; ``detail`` says what was found, and what to do where it is not well."""

    name: str
    health: Health
    detail: str


def doctor(settings: Settings) -> list[Check]:
    """Every check, in order. None of them raises, and none changes anything that lasts."""
    checks = [_checked("python", _python), _checked("data folder", lambda: _data_folder(settings))]
    try:
        catalogue = open_catalogue(settings=settings)
    except (ToolcribError, OSError) as error:
        checks.append(Check("store", "failed", str(error)))
    else:
        try:
            checks += [_checked(name, look) for name, look in _of_catalogue(catalogue, settings)]
        finally:
            catalogue.close()
    checks.append(_checked("blobs", lambda: _blobs(settings)))
    checks.append(_checked("access", lambda: _access(settings)))
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
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".doctor-{uuid.uuid4().hex}"
    probe.write_bytes(b"x")
    probe.unlink()
    free = shutil.disk_usage(folder).free
    health: Health = "warning" if free < _LITTLE_SPACE else "ok"
    return health, f"{folder} is writable, {free / (1 << 30):.1f} GiB free"


def _of_catalogue(catalogue: Catalogue, settings: Settings) -> Iterator[tuple[str, Callable[[], tuple[Health, str]]]]:
    yield "store", lambda: _store(catalogue, settings)
    yield "audit", lambda: _audit(catalogue)
    yield "credentials", lambda: _credentials(catalogue)
    yield "policy", lambda: ("ok", settings.policy)
    yield "outbox", lambda: _outbox(catalogue)


def _store(catalogue: Catalogue, settings: Settings) -> tuple[Health, str]:
    catalogue.store.ping()
    return "ok", f"{shown(settings.store_url)} holds {len(catalogue)} tools"


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
    return health, f"{len(waiting)} events wait for delivery{f'; the last error was: {error}' if error else ''}"


def _blobs(settings: Settings) -> tuple[Health, str]:
    blobs = open_blobs(settings)
    key = f"doctor/{uuid.uuid4().hex}"
    blobs.put(key, io.BytesIO(b"probe"))
    try:
        if b"".join(blobs.open(key) or ()) != b"probe":
            return "failed", f"{shown(settings.blobs_url)} does not give back what was put there"
    finally:
        blobs.delete(key)
    return "ok", f"{shown(settings.blobs_url)} can be written and read"


def _access(settings: Settings) -> tuple[Health, str]:
    tokens = open_tokens(settings)
    try:
        access = access_of(settings, tokens)
        bearer_of(settings)
        count = len(tokens.all())
    finally:
        tokens.close()
    if access.open_to_local:
        return "ok", f"bound to {settings.host}: open to every program of this machine, closed to all others"
    if not is_loopback(settings.host) and not settings.public_url.startswith("https://"):
        return "warning", f"{count} tokens; set public_url to the https address of the proxy in front"
    return "ok", f"credentials are required; {count} tokens{', and JWTs' if settings.jwt_issuer else ''}"
