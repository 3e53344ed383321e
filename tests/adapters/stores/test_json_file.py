"""The catalogue file: readable, editable by hand, and never made worse."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.stores.specs import tool

from toolcrib.adapters.files import replace_file
from toolcrib.adapters.stores.journal import journal_path
from toolcrib.adapters.stores.json_file import JsonFileStore
from toolcrib.core.errors import ConflictError, StoreError, ToolValidationError
from toolcrib.core.query import ALL
from toolcrib.ports import Change


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "tools.json"


def test_the_file_is_a_list_that_a_person_can_read(path: Path):
    store = JsonFileStore(path)
    store.commit([Change("b", tool("b", tags=["é"])), Change("a", tool("a"))])
    assert json.loads(path.read_text("utf-8")) == [
        {"name": "b", "description": "the tool b", "tags": ["é"]},
        {"name": "a", "description": "the tool a"},
    ]
    assert "é" in path.read_text("utf-8")
    assert path.read_text(encoding="utf-8").count("\n") > 5
    store.commit([Change("b", tool("b", author="x"))])
    assert [entry["name"] for entry in json.loads(path.read_text(encoding="utf-8"))] == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[{"name": "a"', "is not JSON"),
        ('{"name": "a"}', "is not a JSON list"),
        ('[{"name": "a", "description": "x"}, 5]', "entry 1"),
        ('[{"name": "a", "description": "x"}, {"name": "b"}]', r"entry 1 .*'b'"),
        ('[{"name": "a", "description": "x", "colour": 1}]', r"entry 0 .*'colour'"),
        ('[{"name": "a", "description": "x"}, {"name": "a", "description": "y"}]', r"entry 1 .*repeats the name 'a'"),
        ("\x80", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
    ids=["cut", "object", "number", "incomplete", "unknown", "twice", "bytes", "deep"],
)
def test_a_broken_file_is_reported_and_left_alone(path: Path, text: str, named: str):
    path.parent.mkdir()
    path.write_bytes(text.encode("latin-1"))
    store = JsonFileStore(path)
    for action in (
        lambda: store.get("a"),
        lambda: store.query(ALL),
        lambda: store.commit([Change("c", tool("c"))]),
        store.ping,
    ):
        with pytest.raises((StoreError, ToolValidationError), match=named) as caught:
            action()
        assert str(path) in str(caught.value)
    assert path.read_bytes() == text.encode("latin-1")


def test_what_is_written_by_hand_is_a_new_version(path: Path):
    store = JsonFileStore(path)
    (first,) = store.commit([Change("a", tool("a")), Change("b", tool("b"))])[:1]
    path.write_text('[{"name": "a", "description": "by hand"}, {"name": "c", "description": "new"}]', encoding="utf-8")
    edited = store.get("a")
    assert edited is not None
    assert (edited.version, edited.document["description"]) == (2, "by hand")
    assert JsonFileStore(path).get("a") == edited
    assert store.get("b") is None
    with pytest.raises(ConflictError):
        store.commit([Change("a", tool("a"), expected=first.etag)])
    store.commit([Change("a", tool("a", author="x"), expected=edited.etag), Change("b", tool("b"), expected=None)])
    assert [record.version for record in JsonFileStore(path).history("a")] == [3, 2, 1]
    assert [(record.version, record.deleted) for record in JsonFileStore(path).history("b")] == [
        (3, False), (2, True), (1, False),
    ]  # fmt: skip
    assert store.history("c")[0].version == 1


def test_what_a_release_with_fewer_fields_wrote_is_no_change_by_hand(path: Path):
    written = Change("a", tool("a", binding={"service_url": "https://example.com"}))
    (first,) = JsonFileStore(path).commit([written])
    for file in (path, journal_path(path)):
        text, times = re.subn(r',\s*"command":\s*""', "", file.read_text(encoding="utf-8"))
        assert times == 1
        file.write_text(text, encoding="utf-8")
    found = JsonFileStore(path).get("a")
    assert found is not None
    assert (found.version, found.etag) == (1, first.etag)
    assert [record.version for record in JsonFileStore(path).history("a")] == [1]


def test_a_crash_between_journal_and_file_undoes_the_batch(path: Path):
    store = JsonFileStore(path)
    (first,) = store.commit([Change("a", tool("a"), event={"n": 1})])
    before = path.read_bytes()
    store.commit([Change("a", tool("a", author="lost"), event={"n": 2}), Change("b", tool("b"))])
    replace_file(path, before)  # as if the process had died before it replaced the file
    for opened in (JsonFileStore(path), store):
        assert opened.history("a") == [first]
        assert opened.history("b") == []
        assert [entry.payload for entry in opened.outbox()] == [{"n": 1}]
    store.commit([Change("b", tool("b"), event={"n": 3})])
    again = JsonFileStore(path)
    assert [entry.payload["n"] for entry in again.outbox()] == [1, 3]
    assert [record.version for record in again.history("b")] == [1]


def test_a_torn_line_at_the_end_of_the_journal_is_cut_off(path: Path):
    store = JsonFileStore(path)
    store.commit([Change("a", tool("a"), event={"n": 1})])
    journal = journal_path(path)
    with journal.open("ab") as file:
        file.write(b'{"before": "half a li')
    assert [entry.payload for entry in store.outbox()] == [{"n": 1}]
    store.commit([Change("b", tool("b"), event={"n": 2})])
    assert [entry.payload["n"] for entry in JsonFileStore(path).outbox()] == [1, 2]
    lines = journal.read_bytes().splitlines()
    assert all(json.loads(line) for line in lines)
    journal.write_bytes(b"nonsense\n" + journal.read_bytes())
    with pytest.raises(StoreError, match="line 1"):
        JsonFileStore(path).get("a")


def test_without_its_journal_the_file_still_counts(path: Path):
    store = JsonFileStore(path)
    store.commit([Change("a", tool("a"))])
    journal_path(path).unlink()
    (record,) = store.history("a")
    assert record.document == tool("a")


def test_links_and_permissions_stay(path: Path, tmp_path: Path):
    real = tmp_path / "real.json"
    real.write_text("[]")
    real.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(real)
    JsonFileStore(path).commit([Change("a", tool("a"))])
    assert path.is_symlink()
    assert json.loads(real.read_bytes())[0]["name"] == "a"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    store = JsonFileStore(tmp_path / "file" / "tools.json")
    with pytest.raises(StoreError, match=r"tools\.json"):
        store.commit([Change("a", tool("a"))])


class Upper:
    """A dialect's own shape."""

    def encode(self, document: dict[str, Any]) -> dict[str, Any]:
        return {"NAME": document["name"], "ABOUT": document["description"]}

    def decode(self, entry: dict[str, Any]) -> dict[str, Any]:
        if set(entry) != {"NAME", "ABOUT"}:
            raise ToolValidationError("it is not NAME and ABOUT")
        return tool(entry["NAME"], description=entry["ABOUT"])


def test_a_codec_decides_the_shape(path: Path):
    store = JsonFileStore(path, codec=Upper())
    (record,) = store.commit([Change("a", tool("a", author="not kept"))])
    assert json.loads(path.read_text(encoding="utf-8")) == [{"NAME": "a", "ABOUT": "the tool a"}]
    assert record.document == tool("a")
    assert JsonFileStore(path, codec=Upper()).get("a") == record
    path.write_text('[{"NAME": "a"}]', encoding="utf-8")
    with pytest.raises(ToolValidationError, match="entry 0 .*NAME and ABOUT"):
        store.get("a")


def test_a_purge_that_a_crash_cuts_short_is_a_purge(path: Path, monkeypatch: pytest.MonkeyPatch):
    """The batch has happened; the versions that are still in the journal go with the next write."""
    store = JsonFileStore(path)
    store.commit([Change("a", tool("a", usage_notes="private")), Change("b", tool("b"))])

    def crash(*_: object) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as crashing:
        crashing.setattr("toolcrib.adapters.stores.journal.replace_file", crash)
        with pytest.raises(StoreError, match="the power went"):
            store.commit([Change("a", None, event={"n": 1}, purge=True)])
    again = JsonFileStore(path)
    assert (again.get("a"), again.history("a")) == (None, [])
    assert [event.payload for event in again.outbox()] == [{"n": 1}]
    assert "private" in journal_path(path).read_text()
    again.acknowledge(1)
    assert "private" not in journal_path(path).read_text()
    assert [record.name for record in JsonFileStore(path).query(ALL)] == ["b"]
    assert JsonFileStore(path).outbox() == []
