"""Uploads, deletions and collectors at once: what was acknowledged never lacks its code."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from tests.support.archives import SPEC, bundle, python_code
from tests.support.blobs import Step, WatchedBlobs, WatchedStore, nothing
from tests.support.s3 import S3Server
from tests.support.stores import STORES

from toolcrib.adapters.blobs import S3Credentials, open_blobs
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.bootstrap import System, open_system
from toolcrib.catalogue.bundles import ingest
from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.code import open_code
from toolcrib.catalogue.collecting import collect
from toolcrib.core.errors import ConflictError, DeniedError, StoreError, ToolcribError, ToolNotFoundError
from toolcrib.core.query import ALL
from toolcrib.formats.bundle import blob_key, bundle_digest, bundle_link
from toolcrib.ports import Blobs, Decision, PolicyRequest
from toolcrib.settings import Settings

NUMBERS = count()


class Refusing:
    remote = False

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(False, "not today")


@cache
def packed(name: str, code: str) -> bytes:
    return bundle(spec={**SPEC, "tool_id": name}, code=python_code(f"{code} = 1\n"))


@dataclass
class House:
    """A catalogue and its blobs, with bundles brought in as the service does it."""

    folder: Path
    blobs: Blobs
    catalogue: Catalogue

    def upload(self, name: str, code: str = "same", **options: Any) -> None:
        path = self.folder / f"{next(NUMBERS)}.zip"
        path.write_bytes(packed(name, code))
        catalogue = options.pop("catalogue", self.catalogue)
        ingest(path, blobs=self.blobs, catalogue=catalogue, link_for=lambda x: bundle_link("http://x", x), **options)
        path.unlink()

    def refused(self, name: str, code: str = "same") -> None:
        with pytest.raises(DeniedError):
            self.upload(name, code, replace=True, catalogue=Catalogue(self.catalogue.store, policy=Refusing()))

    def without_code(self) -> list[str]:
        """The tools whose code is gone."""
        return [name for name, digest in self._digests() if open_code(self.blobs, digest) is None]

    def misplaced(self) -> list[str]:
        """The tools whose code is found in the trash at best."""
        return [name for name, digest in self._digests() if not self.blobs.holds(blob_key(digest))]

    def _digests(self) -> Iterator[tuple[str, str]]:
        for record in self.catalogue.store.query(ALL):
            yield record.name, bundle_digest(record.document["binding"]["source_code_link"]) or ""


@pytest.fixture(params=["sqlite", "mongo"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    store = STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))
    with open_system(Settings(data_dir=str(tmp_path / "data"), store=store)) as opened:
        yield opened


# The three losses of the attack: somebody removes code that somebody else is just about to name.


@pytest.fixture
def house(system: System, tmp_path: Path) -> House:
    return House(tmp_path, system.blobs, system.catalogue)


def during_removal(house: House, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do it in the moment before code is taken from the blobs, if that happens."""
    delete = house.blobs.delete

    def act_and_delete(key: str) -> None:
        monkeypatch.undo()
        if key.startswith("sha256/"):
            act()
        delete(key)

    monkeypatch.setattr(house.blobs, "delete", act_and_delete)


def test_the_last_tool_with_the_same_code_is_deleted_meanwhile(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.upload("old")
    during_removal(house, monkeypatch, lambda: house.upload("new"))
    house.catalogue.delete("old")
    if "new" not in house.catalogue:
        house.upload("new")
    assert house.without_code() == []


def test_a_replace_with_the_same_code_fails_meanwhile(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    during_removal(house, monkeypatch, lambda: house.upload("new"))
    house.refused("old")
    if "new" not in house.catalogue:
        house.upload("new")
    assert house.without_code() == []


def test_a_tool_is_deleted_while_it_is_replaced(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion has looked for others with the same code and found none; then the replace goes all the way."""
    house.upload("tool")
    during_removal(house, monkeypatch, lambda: house.upload("tool", replace=True))
    house.catalogue.delete("tool")
    if "tool" not in house.catalogue:
        house.upload("tool")
    assert house.without_code() == []


def test_many_at_once(house: House) -> None:
    """The same three, left to chance."""
    house.upload("fixed", "fixed")

    def act(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(15):
            name, code = draw.choice(["a", "b", "c"]), draw.choice(["one", "two"])
            with suppress(ToolNotFoundError, ConflictError):
                match draw.randrange(3):
                    case 0:
                        house.catalogue.delete(name)
                    case 1:
                        house.upload(name, code, replace=True)
                    case _:
                        house.refused(name, code)

    all_at_once([partial(act, seed) for seed in range(4)])
    assert house.without_code() == []


def all_at_once(acts: list[Callable[[], object]]) -> None:
    failed: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# Every order of steps that Hypothesis thinks of: two uploads, a deletion, two collectors, some of which are killed.


class KilledError(BaseException):
    """kill -9: nothing that comes after is done."""


FOR_EVER = 10_000


@dataclass
class Actor:
    """One who acts, a step at a time: a step is one operation on the blobs or on the store."""

    act: Callable[["Actor"], object]
    steps_to_live: int = FOR_EVER
    done: bool = False
    error: BaseException | None = None
    next: tuple[str, str] = ("", "")
    """What it is about to do."""
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _stands: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def step(self, what: str, key: str) -> None:
        self.next = what, key
        self._stands.release()
        self._go.acquire()
        self.steps_to_live -= 1
        if self.steps_to_live < 0:
            raise KilledError

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()
        self._stands.acquire()

    def go_on(self, steps: int) -> None:
        """So many steps, if there are as many; then it stands before the next."""
        for _ in range(steps):
            if self.done:
                return
            self._go.release()
            self._stands.acquire()

    def go_before(self, what: str, key: str = "") -> None:
        """Up to an operation on a key that begins so."""
        while not (self.next[0] == what and self.next[1].startswith(key)):
            assert not self.done, what
            self.go_on(1)

    def _run(self) -> None:
        try:
            self.act(self)
        except KilledError:
            pass
        except ToolcribError as error:
            if not isinstance(error, ToolNotFoundError | ConflictError | DeniedError):
                self.error = error
        except BaseException as error:
            self.error = error
        self.done = True
        self._stands.release()


@dataclass
class Stage:
    """Blobs in which all code is old, and what lay in the trash at the beginning is old too."""

    folder: Path
    inner: Blobs
    two_steps: bool
    store: MemoryStore = field(default_factory=MemoryStore)
    old: set[str] = field(default_factory=set)

    def blobs(self, step: Step) -> WatchedBlobs:
        return WatchedBlobs(self.inner, step, age=self._age, two_steps=self.two_steps)

    def house(self, step: Step) -> House:
        return House(self.folder, self.blobs(step), Catalogue(WatchedStore(self.store, step)))

    def _age(self, key: str, at: float) -> float:
        return 0.0 if key in self.old or key.startswith("sha256/") else at

    def grow_old(self) -> None:
        self.old |= set(dict(self.inner.keys()))

    @property
    def quiet(self) -> House:
        return House(self.folder, self.inner, Catalogue(self.store))

    def collect(self, step: Step) -> None:
        collect(self.blobs(step), WatchedStore(self.store, step))

    def upload(self, name: str) -> Callable[[Actor], None]:
        return lambda actor: self.house(actor.step).upload(name, replace=True)

    def refuse(self, actor: Actor) -> None:
        self.house(actor.step).refused("old")

    def delete(self, actor: Actor) -> None:
        self.house(actor.step).catalogue.delete("old")

    def collector(self, actor: Actor) -> None:
        self.collect(actor.step)


BEGINNINGS = ["named", "unnamed", "in the trash", "in both"]


def staged(folder: Path, beginning: str, *, two_steps: bool) -> Stage:
    """The code is there, and a tool names it; or none does; or it has lain in the trash for long, or in both places."""
    stage = Stage(folder, open_blobs("memory:"), two_steps)
    stage.quiet.upload("old")
    if beginning != "named":
        stage.quiet.catalogue.delete("old")
    if beginning.startswith("in"):
        stage.collect(nothing)
        stage.grow_old()
    if beginning == "in both":
        stage.quiet.refused("old")
    return stage


def check_the_end(stage: Stage, actors: list[Actor]) -> None:
    """Nobody failed, and all is well, also when everything but what the living just wrote has grown old."""
    assert [actor.error for actor in actors if actor.error] == []
    for _ in range(3):
        stage.grow_old()
        stage.collect(nothing)
        assert stage.quiet.without_code() == []
    left = dict(stage.inner.keys())
    assert len(left) == min(1, len(stage.quiet.catalogue))  # what nobody names is gone


two_ways = pytest.mark.parametrize("two_steps", [False, True], ids=["atomic", "two steps"])


@two_ways
@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("killed", [False, True], ids=["both live", "first killed"])
@pytest.mark.parametrize("first", ["collector", "upload"])
def test_wherever_one_stands_still_the_other_may_stand_still(
    first: str, killed: bool, beginning: str, two_steps: bool, tmp_path: Path
) -> None:
    """One goes so many steps, then the other so many, then the first goes to its end or is killed: every number."""
    ends = {False}
    for many in range(40):
        few = 0
        while True:
            stage = staged(tmp_path, beginning, two_steps=two_steps)
            actors = [Actor(stage.collector), Actor(stage.upload("new"))]
            if first == "upload":
                actors.reverse()
            one, other = actors
            one.start()
            other.start()
            one.go_on(many)
            one_ended = one.done
            other.go_on(few)
            other_ended = other.done
            one.steps_to_live = 0 if killed else FOR_EVER
            one.go_on(FOR_EVER)
            assert stage.quiet.without_code() == []
            other.go_on(FOR_EVER)
            if not killed:
                assert stage.quiet.misplaced() == []
            check_the_end(stage, actors)
            few += 1
            if other_ended:
                break
        ends.add(one_ended)
        if one_ended:
            break
    assert ends == {False, True}


def test_references_are_asked_for_before_records(tmp_path: Path) -> None:
    """The other way round, an upload that ends between the two questions is seen by neither."""
    stage = staged(tmp_path, "unnamed", two_steps=False)
    collector, upload = Actor(stage.collector), Actor(stage.upload("new"))
    collector.start()
    upload.start()
    collector.go_before("move")
    upload.go_before("commit")
    collector.go_on(1)
    collector.go_before("keys", "references")
    upload.go_on(FOR_EVER)
    collector.go_on(FOR_EVER)
    assert stage.quiet.misplaced() == []
    check_the_end(stage, [collector, upload])


def test_no_collector_empties_the_place_that_another_is_about_to_rely_on(tmp_path: Path) -> None:
    """One has copied the code into the trash, the other removes an old copy from there, then the first the code."""
    stage = staged(tmp_path, "in the trash", two_steps=True)
    emptying, moving, upload = Actor(stage.collector), Actor(stage.collector), Actor(stage.upload("new"))
    emptying.start()
    emptying.go_before("delete", "trash/")
    stage.quiet.refused("other")  # the code is there again
    moving.start()
    moving.go_before("delete", "sha256/")
    upload.start()
    upload.go_before("commit")
    for actor in (emptying, moving, upload):
        actor.go_on(FOR_EVER)
        assert stage.quiet.without_code() == []
    check_the_end(stage, [emptying, moving, upload])


@how(max_examples=100)
@given(st.data())
@two_ways
def test_no_order_of_steps_loses_code(
    two_steps: bool, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("stage")
    stage = staged(folder, data.draw(st.sampled_from(BEGINNINGS)), two_steps=two_steps)
    acts = [stage.collector, stage.upload("new"), stage.upload("old"), stage.refuse, stage.delete]
    more = data.draw(st.lists(st.sampled_from(acts), min_size=1, max_size=3))
    lives = st.one_of(st.just(FOR_EVER), st.integers(0, 20))
    actors = [Actor(act, data.draw(lives)) for act in (stage.collector, stage.upload("new"), *more)]
    for actor in actors:
        actor.start()
    while waiting := [actor for actor in actors if not actor.done]:
        data.draw(st.sampled_from(waiting)).go_on(data.draw(st.integers(1, 5)))
        assert stage.quiet.without_code() == []
    check_the_end(stage, actors)


# The same on real backends, left to chance.


@pytest.fixture(params=["file", "s3"])
def real_blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "file":
        return open_blobs(f"file://{tmp_path}/kept")
    server: S3Server = request.getfixturevalue("s3_server")
    url = f"s3://{server.create_bucket()}?endpoint={server.endpoint}&region={server.region}"
    return open_blobs(url, S3Credentials(server.access_key, server.secret_key))


def test_uploads_deletions_and_collectors_at_once(system: System, real_blobs: Blobs, tmp_path: Path) -> None:
    """Every code is old at once, so that the collectors are after it all the time."""
    old = WatchedBlobs(real_blobs, age=lambda key, at: 0.0 if key.startswith("sha256/") else at)
    house = House(tmp_path, old, system.catalogue)
    ended = threading.Event()

    def change(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(10):
            with suppress(ToolNotFoundError, ConflictError):
                if draw.random() < 0.4:
                    house.catalogue.delete(f"t{seed}")
                else:
                    house.upload(f"t{seed}", draw.choice(["one", "two"]), replace=True)
            assert f"t{seed}" not in house.without_code()

    def change_all() -> None:
        try:
            all_at_once([partial(change, seed) for seed in range(3)])
        finally:
            ended.set()

    def collect_all() -> None:
        while not ended.is_set():
            with suppress(
                StoreError
            ):  # Ceph, asked twice at once to delete one thing, fails now and then: the next round
                collect(old, system.store)

    all_at_once([change_all, collect_all, collect_all])
    assert house.without_code() == []
