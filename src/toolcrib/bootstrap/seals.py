"""What seals credentials: the keys of the settings, or one of our own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.bootstrap.stores import scheme_of
from toolcrib.core.errors import SettingsError
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.sealing import AesGcmSeal
    from toolcrib.ports import Seal


def open_seal(settings: Settings, *, shared: bool) -> Seal:
    """Seals credentials with the keys of the settings, or with one that is made in the data folder at the first need.

    If several processes share the store, each would make its own, so there the settings must name the keys.
    """
    from toolcrib.adapters.sealing import AesGcmSeal, DeferredSeal, key_file

    def seal() -> AesGcmSeal:
        if settings.seal_keys:
            return AesGcmSeal(settings.seal_keys)
        if shared:
            raise SettingsError(
                "a shared store needs the same keys everywhere to seal credentials; set TOOLCRIB_SEAL_KEYS"
            )
        if scheme_of(settings.store_url) == "memory":
            return AesGcmSeal([new_key()])
        return AesGcmSeal(key_file(_key_path(settings)))

    return DeferredSeal(seal)


def new_key() -> str:
    """A fresh key, as the settings take it."""
    from toolcrib.adapters.sealing import new_key

    return new_key()


def add_key(settings: Settings) -> None:
    """Put a new key before those in the data folder."""
    from toolcrib.adapters.sealing import add_key

    add_key(_key_path(settings))


def _key_path(settings: Settings) -> Path:
    return settings.data_folder / "keys" / "seal.key"
