"""The sandbox that bundles run in, by the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.runners.sandbox import Sandbox


def open_sandbox(settings: Settings) -> Sandbox:
    """Nothing is started before the first run, or before its walls are asked for."""
    from toolcrib.adapters.runners.sandbox import Sandbox

    return Sandbox(isolation=settings.bundle_isolation, hidden=own_places(settings))


def own_places(settings: Settings) -> list[Path]:
    """What is the service's own on this machine's disk: no bundle sees it, even in a folder that they all see."""
    files = [Path(unquote(urlsplit(url).path)) for url in (settings.store_url, settings.blobs_url)]
    files += [Path(settings.env_file).expanduser(), *_configured(settings)]
    beside = [other for file in files if file.is_file() for other in file.parent.glob(f"{file.name}*")]
    return [settings.data_folder, *(file for file in files if file.is_dir() and file != Path("/")), *beside]


def _configured(settings: Settings) -> list[Path]:
    """The files that settings came from."""
    return [Path(source) for source in set(settings.sources.values()) if Path(source).is_file()]
