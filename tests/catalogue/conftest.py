"""A catalogue on each of the stores."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolcrib.adapters.sealing import new_key
from toolcrib.bootstrap import open_catalogue
from toolcrib.catalogue import Catalogue
from toolcrib.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=str(tmp_path / "data"), seal_keys=(new_key(),), environ={})


@pytest.fixture
def catalogue(store_url: str, settings: Settings) -> Iterator[Catalogue]:
    found = open_catalogue(store_url, settings)
    yield found
    found.close()


@pytest.fixture
def reopen(store_url: str, settings: Settings) -> Iterator[Callable[[], Catalogue]]:
    """Another process's catalogue, on the same store."""
    if store_url == "memory:":
        pytest.skip("memory is not shared")
    opened: list[Catalogue] = []

    def again() -> Catalogue:
        opened.append(open_catalogue(store_url, settings))
        return opened[-1]

    yield again
    for one in opened:
        one.close()
