"""Every store, fresh and empty. A new backend is one line in STORES."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolcrib.adapters.stores.json_file import JsonFileStore
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.adapters.stores.mongo import MongoStore
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.ports import Store

STORES: dict[str, Callable[[pytest.FixtureRequest, Path], Callable[[], Store]]] = {
    "memory": lambda request, folder: MemoryStore,
    "json": lambda request, folder: lambda: JsonFileStore(folder / "tools.json"),
    "sqlite": lambda request, folder: lambda: SqliteStore(folder / "tools.db"),
    "mongo": lambda request, folder: _mongo(request.getfixturevalue("mongo_database_url")),
}


def _mongo(url: str) -> Callable[[], Store]:
    return lambda: MongoStore(url)


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the same store as often as it is called."""
    return STORES[request.param](request, tmp_path)


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Iterator[Store]:
    store = open_store()
    yield store
    store.close()


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """A store that outlives its object."""
    return STORES[request.param](request, tmp_path)
