"""What seals credentials: the keys of the settings, or those of the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.bootstrap.stores import scheme_of
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.sealing import StoreSeal
    from toolcrib.ports import Store


def open_seal(settings: Settings, store: Store) -> StoreSeal:
    """Seals the credentials in ``store`` with the keys of the settings, or with those in the data folder."""
    from toolcrib.adapters.sealing import StoreSeal

    path = None if scheme_of(settings.store_url) == "memory" else settings.data_folder / "keys" / "seal.key"
    return StoreSeal(store, settings.seal_keys, path)


def new_key() -> str:
    """A fresh key, as the settings take it."""
    from toolcrib.adapters.sealing import new_key

    return new_key()
