"""What every store promises; see toolcrib.ports.Store."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.adapters.stores.specs import tool
from tests.support.stores import STORES

from toolcrib import bootstrap
from toolcrib.core.errors import (
    ConflictError,
    InvalidQueryError,
    ToolExistsError,
    ToolNotFoundError,
    ToolValidationError,
)
from toolcrib.core.json import MAX_DEPTH
from toolcrib.core.query import ALL, parse
from toolcrib.core.ranking import Search, index_words
from toolcrib.core.spec import ToolExample, ToolSpec, definition_digest_of
from toolcrib.formats.bundle import parse_json_object
from toolcrib.formats.toolentry import entry_to_spec, spec_to_entry
from toolcrib.ports import Change, Store

SCHEMA = {
    "type": "object",
    "$defs": {"point": {"$id": "p", "type": "object"}, "＄x": {}, "a.b": {"maximum": 2**64 - 1}},
    "properties": {
        "where": {"$ref": "#/$defs/point"},
        "": {},
        "w": {"const": {"$ref": "x", "$id": "y"}},
        "é": {"minimum": -0.5},
    },
}


def names(store: Store, where: object = None, **options: object) -> list[str]:
    found = store.query(parse(where or {}), **options)  # type: ignore[arg-type]
    return [record.name for record in found]


def test_what_is_written_is_read_back_whole(store: Store):
    document = tool("a", parameters=SCHEMA, metadata={"n": [1, 1.5, None, True, {"k": "v\0\n"}]}, tags=["x", "x", ""])
    (written,) = store.commit([Change("a", document)])
    assert (written.name, written.version, written.deleted) == ("a", 1, False)
    assert store.get("a") == written
    assert written.document == document
    assert list(written.document["parameters"]["$defs"]) == list(SCHEMA["$defs"])


def test_nothing_is_none(store: Store):
    assert store.get("nobody") is None
    assert store.get("\ud800") is None
    assert store.history("nobody") == []
    assert store.query(ALL) == []
    assert store.count(ALL) == 0
    assert store.outbox() == []
    assert store.commit([]) == []


def test_a_caller_cannot_change_what_is_kept(store: Store):
    document = tool("a", metadata={"list": [1]})
    (written,) = store.commit([Change("a", document)])
    document["metadata"]["list"].append(2)
    written.document["metadata"]["list"].append(3)
    read = store.get("a")
    assert read is not None
    read.document["metadata"]["list"].append(4)
    again = store.get("a")
    assert again is not None
    assert again.document["metadata"] == {"list": [1]}


def test_versions_count_up_and_survive_a_delete(store: Store):
    for turn in range(2):
        store.commit([Change("a", tool("a", version=f"{turn}.0.0"))])
    store.commit([Change("a", None)])
    assert store.get("a") is None
    store.commit([Change("a", tool("a", version="9.0.0"))])
    history = store.history("a")
    assert [(record.version, record.deleted) for record in history] == [(4, False), (3, True), (2, False), (1, False)]
    assert [record.document.get("version") for record in history] == ["9.0.0", None, "1.0.0", "0.0.0"]
    assert len({record.etag for record in history}) == 4
    assert history[0] == store.get("a")


def test_an_owner_is_kept_with_the_tool_and_ends_with_it(store: Store):
    (made, nobodys) = store.commit([Change("a", tool("a"), owner="ada"), Change("b", tool("b"))])
    assert (made.owner, nobodys.owner) == ("ada", "")
    store.commit([Change("a", tool("a", description="changed"))])
    assert store.get("a").owner == "ada"  # type: ignore[union-attr]
    (given,) = store.commit([Change("a", tool("a"), owner="bob")])
    assert store.get("a") == given and store.query(parse({"name": "a"})) == [given] and given.owner == "bob"
    store.commit([Change("a", None)])
    store.commit([Change("a", tool("a"))])
    assert [(old.deleted, old.owner) for old in store.history("a")] == [
        (False, ""), (True, ""), (False, "bob"), (False, "ada"), (False, "ada"),
    ]  # fmt: skip
    store.commit([Change("b", tool("b"), owner="ada"), Change("b", None), Change("b", tool("b"), owner="cyd")])
    assert store.get("b").owner == "cyd"  # type: ignore[union-attr]


def test_how_a_tool_runs_may_change_without_its_definition(store: Store):
    def write(**fields: object) -> tuple[int, int, str]:
        (record,) = store.commit([Change("a", tool("a", **fields))])
        assert store.get("a") == record
        return record.version, record.definition, definition_digest_of(record.document)

    first = write(description="one")
    assert first[:2] == (1, 1)
    operations = {
        "execution_mode": "batch",
        "timeout_seconds": 3,
        "binding": {"service_url": "http://127.0.0.1:9/"},
        "policy_rule_uri": "policies://p",
        "validation_mode": "strict",
        "credentials": {"key": "sealed"},
        "safety_level": "high",
    }
    assert write(description="one", **operations) == (2, 1, first[2])
    store.commit([Change("a", tool("a", description="one", isolation="process"), owner="ann")])
    changed = write(description="two", execution_mode="sync")
    assert changed[:2] == (4, 4)
    assert changed[2] != first[2]
    assert [record.definition for record in store.history("a")] == [4, 1, 1, 1]
    store.commit([Change("a", None)])
    assert write(description="two")[:2] == (6, 6)
    assert [record.definition for record in store.history("a")] == [6, 0, 4, 1, 1, 1]


def test_definitions_are_there_after_opening_again(lasting: Callable[[], Store]):
    for mode in ("sync", "batch"):
        store = lasting()
        store.commit([Change("a", tool("a", execution_mode=mode))])
        store.close()
    store = lasting()
    assert [(record.version, record.definition) for record in store.history("a")] == [(2, 1), (1, 1)]
    store.close()


def test_a_purge_leaves_nothing(store: Store):
    store.commit([Change("a", tool("a", tags=["x"])), Change("b", tool("b", tags=["x"]))])
    store.commit([Change("a", tool("a", tags=["y"]))])
    record = store.get("a")
    assert record is not None
    with pytest.raises(ConflictError):
        store.commit([Change("a", None, expected="other", purge=True)])
    assert store.commit([Change("a", None, expected=record.etag, event={"n": 1}, purge=True)])[0].deleted
    assert (store.get("a"), store.history("a")) == (None, [])
    assert names(store, {"tags": {"$in": ["x", "y"]}}) == ["b"]
    assert [found.name for found in store.text_candidates([Search.of("tool").lookup("tool")], limit=9)] == ["b"]
    assert [event.payload for event in store.outbox()] == [{"n": 1}]
    with pytest.raises(ToolNotFoundError):
        store.commit([Change("a", None, purge=True)])
    assert [found.version for found in store.history("b")] == [1]
    (again,) = store.commit([Change("a", tool("a"), expected=None)])
    assert (again.version, again.definition) == (1, 1)


def test_what_was_deleted_can_be_purged(store: Store):
    store.commit([Change("a", tool("a"))])
    store.commit([Change("a", None)])
    with pytest.raises(ToolNotFoundError):
        store.commit([Change("a", None)])
    store.commit([Change("a", None, expected=None, purge=True)])
    assert store.history("a") == []


def test_a_purge_is_seen_after_opening_again(lasting: Callable[[], Store]):
    store = lasting()
    for text in ("one", "two"):
        store.commit([Change("a", tool("a", description=text)), Change("b", tool("b", description=text))])
    store.commit([Change("a", None, purge=True)])
    store.close()
    store = lasting()
    assert store.history("a") == []
    assert [record.version for record in store.history("b")] == [2, 1]
    store.commit([Change("a", tool("a"))])
    assert [record.version for record in store.history("a")] == [1]
    store.close()


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_what_was_purged_is_not_in_the_files(kind: str, tmp_path: Path):
    store = bootstrap.open_store(STORES[kind](tmp_path, str))
    secret = "a-name-that-nobody-may-read"
    for text in (secret, "nothing"):
        store.commit([Change("a", tool("a", usage_notes=text)), Change("b", tool("b"))])

    def written() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert secret.encode() in written()
    store.commit([Change("a", None, purge=True)])
    assert secret.encode() not in written()
    assert [record.version for record in store.history("b")] == [2, 1]
    store.close()


def test_expected_etags(store: Store):
    (first,) = store.commit([Change("a", tool("a"), expected=None)])
    with pytest.raises(ToolExistsError):
        store.commit([Change("a", tool("a"), expected=None)])
    (second,) = store.commit([Change("a", tool("a", author="x"), expected=first.etag)])
    with pytest.raises(ConflictError):
        store.commit([Change("a", tool("a"), expected=first.etag)])
    with pytest.raises(ConflictError):
        store.commit([Change("a", None, expected=first.etag)])
    store.commit([Change("a", None, expected=second.etag)])
    for change in (
        Change("a", None),
        Change("a", tool("a"), expected=second.etag),
        Change("a", None, expected=second.etag),
        Change("a", None, expected=None),
    ):
        with pytest.raises(ToolNotFoundError):
            store.commit([change])


def test_all_of_a_commit_or_none(store: Store):
    store.commit([Change("b", tool("b"))])
    with pytest.raises(ToolExistsError):
        store.commit([
            Change("a", tool("a"), event={"n": 1}),
            Change("b", tool("b"), expected=None),
        ])  # fmt: skip
    assert names(store) == ["b"]
    assert store.history("a") == []
    assert store.outbox() == []


def test_changes_of_one_commit_see_each_other(store: Store):
    made, gone, again = store.commit([
        Change("a", tool("a"), expected=None),
        Change("a", None),
        Change("a", tool("a", author="x"), expected=None),
    ])  # fmt: skip
    assert [made.version, gone.version, again.version] == [1, 2, 3]
    assert store.get("a") == again
    assert store.history("a") == [again, gone, made]


@pytest.mark.parametrize(
    "document",
    [
        {"name": "b", "description": "another name"},
        {"name": "a", "description": "x", "metadata": {"n": float("nan")}},
        {"name": "a", "description": "x", "metadata": {"n": 10**40}},
        {"name": "a", "description": "x", "metadata": {"text": "\ud800"}},
        {"name": "a", "description": "x", "metadata": {"what": object()}},
        {"name": "a", "description": "x", "tags": "web"},
        {"name": "a", "description": "x", "tool_type": 3},
        {"name": "a", "description": "x", "manual": "m" * 9_000_000},
    ],
    ids=["name", "nan", "huge", "surrogate", "object", "tags", "type", "large"],
)
def test_a_document_that_some_store_could_not_keep_is_refused_by_all(store: Store, document: dict[str, object]):
    with pytest.raises(ToolValidationError, match="'a'"):
        store.commit([Change("a", document)])
    assert store.get("a") is None


def test_query_orders_pages_and_counts(store: Store):
    every = [f"t{number:02d}" for number in range(25)]
    tools = [tool(name, tags=["all", "odd" if int(name[1:]) % 2 else "even"], tool_type="x") for name in every]
    store.commit([Change(document["name"], document) for document in reversed(tools)])
    assert names(store) == every
    assert names(store, {"tags": "odd"}) == every[1::2]
    assert names(store, {"tags": {"$all": ["all", "even"]}, "tool_type": "x"}, limit=3) == ["t00", "t02", "t04"]
    assert names(store, {"tags": "even"}, limit=3, after="t04") == ["t06", "t08", "t10"]
    assert names(store, after="t23") == ["t24"]
    assert names(store, after="zz") == []
    assert names(store, limit=0) == []
    assert store.count(parse({"tags": "odd"})) == 12
    assert store.count(parse({"name": {"$regex": "^t.*5$"}})) == 2
    assert names(store, {"name": {"$regex": "^t.*5$"}}, limit=1, after="t05") == ["t15"]
    with pytest.raises(InvalidQueryError):
        store.query(parse({"name": {"$regex": "(a)\\1"}}))


def test_an_index_forgets_what_a_tool_was(store: Store):
    store.commit([Change("a", tool("a", tags=["old"], tool_type="old", execution_mode="old", policy_rule_uri="old"))])
    store.commit([Change("a", tool("a", tags=["new"], tool_type="new", execution_mode="new", policy_rule_uri="new"))])
    for field in ("tags", "tool_type", "execution_mode", "policy_rule_uri"):
        assert names(store, {field: "old"}) == []
        assert names(store, {field: "new"}) == ["a"]
    store.commit([Change("a", None)])
    assert names(store, {"tags": "new"}) == []


def test_candidates_hold_a_word_of_every_lookup(store: Store):
    store.commit([
        Change("getRain", tool("getRain", description="Tells of rain", tags=["sky"], manual="Überall auf der Straße")),
        Change("rainbow", tool("rainbow", description="Paints", usage_notes="needs a sky")),
    ])  # fmt: skip

    def names(text: str, limit: int = 9) -> set[str]:
        search = Search.of(text)
        found = store.text_candidates([search.lookup(term) for term in search.terms], limit=limit)
        assert all(words == index_words(store.get(name).document) for name, words in found)  # type: ignore[union-attr]
        return {name for name, _ in found}

    assert names("sky") == names("sky rai") == {"getRain", "rainbow"}, "the last one may be unfinished"
    assert names("rain sky") == names("straße") == names("uberall straß") == {"getRain"}
    assert names("rain paint") == names("zebra") == set()
    assert len(names("sky", limit=1)) == 1
    store.commit([Change("rainbow", None), Change("getRain", tool("getRain", description="snow"))])
    assert names("sky") == names("rainbow") == set()
    assert names("snow get") == {"getRain"}


def test_the_outbox_keeps_order_and_attempts(store: Store):
    store.commit([
        Change("a", tool("a"), event={"n": 1, "$set": "x"}),
        Change("b", tool("b")),
        Change("a", None, event={"n": 2}),
    ])  # fmt: skip
    store.commit([Change("c", tool("c"), event={"n": 3})])
    entries = store.outbox()
    assert [(entry.name, entry.payload["n"]) for entry in entries] == [("a", 1), ("a", 2), ("c", 3)]
    assert entries[0].payload["$set"] == "x"
    assert [entry.sequence for entry in entries] == sorted({entry.sequence for entry in entries})
    assert store.outbox(limit=1) == entries[:1]
    store.acknowledge(entries[0].sequence)
    store.acknowledge(entries[0].sequence)
    store.postpone(entries[1].sequence, not_before=12.5, error="refused")
    store.postpone(entries[1].sequence, not_before=13.5, error="refused again")
    store.postpone(10**9, not_before=1, error="nobody")
    later, last = store.outbox()
    assert (later.sequence, later.attempts, later.not_before, later.last_error) == (
        entries[1].sequence, 2, 13.5, "refused again",
    )  # fmt: skip
    store.acknowledge(later.sequence)
    store.acknowledge(last.sequence)
    (record,) = store.commit([Change("d", tool("d"), event={})])
    assert store.outbox()[0].sequence > last.sequence
    assert record.version == 1


def test_everything_is_there_after_opening_again(lasting: Callable[[], Store]):
    store = lasting()
    store.commit([Change("a", tool("a", metadata={"n": 1}), event={"n": 1}), Change("b", tool("b"))])
    store.commit([Change("a", tool("a", metadata={"n": 2}), event={"n": 2}), Change("b", None)])
    store.acknowledge(store.outbox()[0].sequence)
    store.postpone(store.outbox()[0].sequence, not_before=5.0, error="x")
    before = [store.get("a"), store.get("b"), store.history("a"), store.history("b"), store.outbox()]
    store.close()
    again = lasting()
    assert [again.get("a"), again.get("b"), again.history("a"), again.history("b"), again.outbox()] == before
    again.close()


def test_two_openers_see_each_other(lasting: Callable[[], Store]):
    here, there = lasting(), lasting()
    (first,) = here.commit([Change("a", tool("a"))])
    assert there.get("a") == first
    (second,) = there.commit([Change("a", tool("a", author="x"), expected=first.etag)])
    with pytest.raises(ConflictError):
        here.commit([Change("a", tool("a"), expected=first.etag)])
    assert here.get("a") == second
    assert names(there) == names(here) == ["a"]
    here.close()
    there.close()


def test_of_rivals_one_wins(store: Store):
    (first,) = store.commit([Change("a", tool("a"))])

    def rival(number: int) -> int:
        try:
            store.commit([Change("a", tool("a", author=str(number)), expected=first.etag, event={"by": number})])
        except ConflictError:
            return 0
        return 1

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(rival, range(6))) == 1
    (event,) = store.outbox()
    winner = store.get("a")
    assert winner is not None
    assert winner.document["author"] == str(event.payload["by"])
    assert [record.version for record in store.history("a")] == [2, 1]


def test_threads_lose_nothing(store: Store):
    def add(number: int) -> None:
        store.commit([Change(f"t{number:02d}", tool(f"t{number:02d}", tags=["x"]), expected=None, event={"n": number})])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(24)))
    assert names(store, {"tags": "x"}) == [f"t{number:02d}" for number in range(24)]
    assert sorted(entry.payload["n"] for entry in store.outbox()) == list(range(24))


def test_ping_says_yes(store: Store):
    store.count(ALL)  # a ping waits for nobody, and a server is not reached at once
    store.ping()


def test_a_claim_is_kept_by_the_first(store: Store):
    assert store.claimed("key") == ""
    assert store.claim("key", "a") == "a"
    assert store.claim("key", "b") == "a"
    assert store.claimed("key") == "a"
    assert store.claimed("other") == ""


def test_a_claim_is_replaced_by_who_knows_it(store: Store):
    assert store.claim("key", "b", instead_of="a") == ""
    store.claim("key", "a")
    assert store.claim("key", "c", instead_of="b") == "a"
    assert store.claim("key", "b", instead_of="a") == "b"
    assert store.claimed("key") == "b"


def test_claims_outlive_the_store_and_the_tools(lasting: Callable[[], Store]):
    first = lasting()
    first.commit([Change("a", tool("a"))])
    first.claim("key", "1")
    first.claim("key", "2", instead_of="1")
    first.commit([Change("a", None)])
    first.close()
    again = lasting()
    assert (again.claimed("key"), again.query(ALL)) == ("2", [])
    again.close()


def test_of_many_claims_at_once_one_wins(lasting: Callable[[], Store]):
    stores = [lasting() for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda number: stores[number % 4].claim("key", f"value-{number}"), range(32)))
    assert answers == {stores[0].claimed("key")}
    for opened in stores:
        opened.close()


def deep(depth: int, in_list: bool) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value] if in_list else {"$x.y": value}
    return value


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(depth=st.integers(1, MAX_DEPTH), in_list=st.booleans())
@example(depth=MAX_DEPTH, in_list=False)
@example(depth=MAX_DEPTH, in_list=True)
def test_a_valid_spec_can_be_stored_found_and_written_as_an_entry(store: Store, depth: int, in_list: bool):
    inner = deep(depth - 1, in_list) if depth > 1 else 1
    spec = ToolSpec(
        name="a",
        description="",
        metadata={"\0": inner},
        parameters={"type": "object", "default": inner},
        examples=(ToolExample(input={"v": inner}),),
    )
    document = spec.to_dict()
    store.commit([Change("a", document, event={"document": document})])
    stored = store.get("a")
    assert stored is not None
    assert stored.document == store.history("a")[0].document == document
    assert ToolSpec.parse(stored.document) == spec
    assert names(store, {"metadata": {"$eq": {"\0": inner}}}) == ["a"]
    entry = spec_to_entry(spec)
    parse_json_object(json.dumps(entry), "spec.json")
    assert entry_to_spec(entry) == spec
