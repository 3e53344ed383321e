"""What seals credentials: the keys of the settings, or those of the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.bootstrap.stores import kind_of
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.ports import Store, StoreSeal


def open_seal(settings: Settings, store: Store) -> StoreSeal:
    """Seals the credentials in ``store`` with the keys of the settings, or with those in the data folder."""
    from toolcrib.adapters.sealing import ClaimedSeal

    path = settings.data_folder / "keys" / "seal.key" if kind_of(settings.store_url) != "memory" else None
    return ClaimedSeal(store, settings.seal_keys, path)


def new_key() -> str:
    """A fresh key, as the settings take it."""
    from toolcrib.adapters.sealing import new_key

    return new_key()
