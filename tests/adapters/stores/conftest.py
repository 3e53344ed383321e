"""Every store, fresh and empty."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.support.stores import STORES

from toolcrib import bootstrap
from toolcrib.ports import Store


@pytest.fixture
def open_store(store_url: str) -> Callable[[], Store]:
    """Opens the same store as often as it is called."""
    return partial(bootstrap.open_store, store_url)


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Iterator[Store]:
    store = open_store()
    yield store
    store.close()


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """A store that outlives its object."""
    url = STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))
    return partial(bootstrap.open_store, url)
