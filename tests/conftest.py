"""Real parts, started when the first test of a worker asks for them."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from pymongo import MongoClient

from tests.support import s3
from tests.support.chromium import find_chromium
from tests.support.mongo import MongoCluster, find_mongod
from tests.support.newcomer import newcomer_environment
from tests.support.stores import STORES
from tests.support.waiting import PATIENCE

# A law that holds slowly on a busy machine holds. `make test` tries the same examples every time, `make nightly`
# (HYPOTHESIS_PROFILE=explore) new ones, and many times as many; it keeps what fails, and prints how to repeat it.
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=60
)
settings.register_profile(
    "explore",
    settings.get_profile("steady"),
    derandomize=False,
    max_examples=1000,
    database=DirectoryBasedExampleDatabase(Path(__file__).parents[1] / ".hypothesis/examples"),
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_report_header() -> list[str]:
    """What repeats the order of this run."""
    return [f"TEST_ORDER={seed}" for seed in [os.environ.get("TEST_ORDER")] if seed]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Any order, if ``TEST_ORDER`` is a number to draw it by: no test may live on what another has left."""
    if seed := os.environ.get("TEST_ORDER"):
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        draw = random.Random(seed)
        for tests in files.values():
            draw.shuffle(tests)
        items[:] = [test for tests in draw.sample(list(files.values()), len(files)) for test in tests]


@pytest.fixture(scope="session", autouse=True)
def _nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads the developer's settings or writes into their store."""
    with patch.dict(os.environ, newcomer_environment(tmp_path_factory.mktemp("home")), clear=True):
        yield


@pytest.fixture(scope="session")
def mongod() -> Path:
    return find_mongod() or pytest.skip("no mongod: the test wheel is for Linux")


@pytest.fixture(scope="session")
def mongo_url(mongod: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A one-node replica set that is always there: whoever asks it waits as long as a busy machine takes."""
    with MongoCluster(mongod, tmp_path_factory.mktemp("mongo"), nodes=1) as cluster:
        yield f"{cluster.url}&serverSelectionTimeoutMS={PATIENCE * 1000:.0f}"


@pytest.fixture
def mongo_database_url(mongo_url: str) -> Iterator[str]:
    """The same server, with a database of the test's own in the URL."""
    name = f"test_{uuid4().hex[:12]}"
    yield mongo_url.replace("/?", f"/{name}?")
    with MongoClient[dict[str, object]](mongo_url) as client:
        client.drop_database(name)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh and empty store, of each kind in turn."""
    return STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))


@pytest.fixture(scope="session")
def _three_nodes(mongod: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoCluster]:
    with MongoCluster(mongod, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def mongo_cluster(_three_nodes: MongoCluster) -> MongoCluster:
    """Three nodes, all well; a test may kill and restart them."""
    _three_nodes.heal()
    return _three_nodes


@pytest.fixture(scope="session")
def chromium_path() -> str:
    return find_chromium() or pytest.skip("no Chromium: run make parts, or set TOOLCRIB_CHROMIUM")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.S3Server]:
    """Ceph if it is installed, SeaweedFS otherwise."""
    for kind in s3.available_kinds():
        with s3.s3_server(kind, tmp_path_factory.mktemp(kind)) as server:
            yield server
            return
    pytest.skip("no S3 server: neither Ceph nor SeaweedFS is installed")
