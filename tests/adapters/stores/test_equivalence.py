"""Memory, a JSON file, SQLite and a real MongoDB give the same answer to the same question."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from tests.adapters.stores.generated import questions
from tests.adapters.stores.specs import tool
from tests.support.filters import to_mongo
from tests.support.stores import STORES

from toolcrib import ToolRegistry
from toolcrib.bootstrap import open_store, seed_samples
from toolcrib.catalogue import Catalogue
from toolcrib.core.context import ToolContext
from toolcrib.core.query import ALL, parse
from toolcrib.core.ranking import ENOUGH, Search
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.ports import Change, Store

Asked = tuple[tuple[dict[str, Any], ...], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def every_store(mongo_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    folder = tmp_path_factory.mktemp("equivalence")
    mongo = mongo_url.replace("/?", "/equivalence?")
    opened = {name: open_store(address(folder, lambda: mongo)) for name, address in STORES.items()}
    yield opened
    for store in opened.values():
        store.close()


@pytest.fixture(scope="module")
def stores(every_store: dict[str, Store]) -> dict[str, Store]:
    """Without the JSON file, which is asked in memory as that store is, and slow to fill."""
    return {name: store for name, store in every_store.items() if name != "json"}


def fill(store: Store, catalogue: tuple[dict[str, Any], ...]) -> None:
    gone = [Change(record.name, None) for record in store.query(ALL)]
    store.commit([*gone, *(Change(document["name"], document) for document in catalogue)])


@pytest.mark.timeout(400)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(questions)
@example((({"name": "t0", "metadata": {"$ref": "x", "$id": 1}},), [{"metadata": {"$eq": {"$ref": "x", "$id": 1}}}]))
@example((({"name": "t0", "a": [[1, 2]]},), [{"a.0": 1}, {"a.0.1": 2}, {"a": [1, 2]}, {"a": {"$elemMatch": {"0": 1}}}]))
@example((({"name": "t0", "a": 2**64 - 1},), [{"a": 2.0**64}, {"a": {"$gt": 2**63 - 1}}, {"a": {"$type": "decimal"}}]))
def test_every_store_gives_the_same_answer(stores: dict[str, Store], asked: Asked):
    catalogue, questions = asked
    for store in stores.values():
        fill(store, catalogue)
        assert [record.document for record in store.query(ALL)] == list(catalogue)
    for question in questions:
        where = parse(question)
        expected = [document["name"] for document in catalogue if where.matches(document)]
        event("some match" if 0 < len(expected) < len(catalogue) else "all or none match")
        written_back = parse(to_mongo(where))
        assert [document["name"] for document in catalogue if written_back.matches(document)] == expected
        for name, store in stores.items():
            assert [record.name for record in store.query(where)] == expected, (name, question)
            if expected:
                assert store.count(where) == len(expected), (name, question)
            if expected[1:]:
                page = store.query(where, limit=1, after=expected[0])
                assert [record.name for record in page] == expected[1:2], (name, question)


@pytest.mark.parametrize("length", [6_140, 2_000_000])
@pytest.mark.parametrize("pattern", ["^.*Install", "^[^#]*Install$", "^(.|\n)*Install", "Inst(all)+"])
def test_a_long_manual_is_found_by_what_stands_at_its_end(stores: dict[str, Store], pattern: str, length: int):
    manual = "x" * (length - len("Install")) + "Install"
    where = parse({"manual": {"$regex": pattern}})
    for name, store in stores.items():
        fill(store, ({"name": "t0", "manual": manual}, {"name": "t1", "manual": manual[:-1]}))
        assert [record.name for record in store.query(where)] == ["t0"], name


# Searching

TERMS = ("read", "readFiles", "file", "fil", "Files", "mail", "the", "straße", "naïve", "日本", "v2", "x" * 70)
sentences = st.lists(st.sampled_from(TERMS), max_size=4).map(" ".join)
found_tools = st.lists(
    st.builds(
        dict,
        name=st.lists(st.sampled_from(("read", "File", "files", "mail", "v2")), min_size=1, max_size=3).map("_".join),
        description=sentences,
        **dict.fromkeys(("display_name", "category", "tool_type", "usage_notes", "manual"), sentences),
        tags=st.lists(sentences, max_size=2),
        capabilities=st.lists(sentences, max_size=2),
        parameters=st.dictionaries(sentences, st.builds(dict, description=sentences), max_size=2).map(
            lambda properties: {"type": "object", "properties": properties}
        ),
    ).map(lambda fields: ToolSpec.parse(fields).to_dict()),
    unique_by=lambda document: document["name"],
    max_size=12,
)


@pytest.fixture(scope="module")
def catalogues(every_store: dict[str, Store]) -> dict[str, Catalogue]:
    return {name: Catalogue(store) for name, store in every_store.items()}


def search_everywhere(catalogues: dict[str, Catalogue], text: str, **options: Any) -> list[tuple[str, float, str]]:
    """Names, scores and reasons, after making sure that they are the same on every store."""
    found = {
        name: [(hit.spec.name, hit.score, hit.reason) for hit in catalogue.search(text, **options)]
        for name, catalogue in catalogues.items()
    }
    for name, hits in found.items():
        assert hits == found["memory"], (name, text)
    return found["memory"]


async def _do_nothing(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> None:
    """Found, not run."""


@pytest.mark.timeout(400)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(found_tools, st.lists(sentences | st.text(max_size=20), min_size=1, max_size=4), st.integers(1, 12))
def test_every_store_searches_alike(
    catalogues: dict[str, Catalogue], tools: list[dict[str, Any]], texts: list[str], limit: int
):
    registry = ToolRegistry()
    for document in tools:
        registry.register(Tool(ToolSpec.parse(document), print, _do_nothing))
    for catalogue in catalogues.values():
        fill(catalogue.store, tuple(tools))
    for text in texts:
        hits = search_everywhere(catalogues, text, limit=limit)
        event("found" if hits else "not found")
        assert all(0 < score <= 1 and reason for _, score, reason in hits)
        every_word = [tool.name for tool in registry.search(text)] if Search.of(text).terms else []
        everything = [name for name, _, _ in search_everywhere(catalogues, text, limit=100)]
        assert every_word == [name for name in everything if name in every_word], "the registry ranks as the stores do"
        assert [name for name, _, _ in hits] == everything[:limit]


def test_the_shipped_tools_are_found_alike(catalogues: dict[str, Catalogue]):
    for catalogue in catalogues.values():
        fill(catalogue.store, ())
        seed_samples(catalogue)
    for text in ("open a page in the browser", "html_parsing", "screen", "scre", "parse html", "click", "Goto",
                 "read a pdf and email me the tables", "extract text from the page and store it"):  # fmt: skip
        assert search_everywhere(catalogues, text), text
        search_everywhere(catalogues, text, filter={"category": "navigation"})
    assert search_everywhere(catalogues, "Goto")[0][:2] == ("goto", 1.0)


def test_common_words_are_searched_alike(catalogues: dict[str, Catalogue]):
    """More tools hold the words than are looked at; the best are found nevertheless."""
    weak = [tool(f"tool-{number:04}", description="about rain and snow") for number in range(ENOUGH + 50)]
    strong = [tool("zz_rain", tags=["snow"]), tool("zz_snow", tags=["rain"]), tool("zz-rain-snow")]
    named = [tool("of-no-note-at-all", description="x")]
    for catalogue in catalogues.values():
        fill(catalogue.store, (*weak, *strong, *named))
    assert [name for name, *_ in search_everywhere(catalogues, "rain snow", limit=3)] == [
        "zz-rain-snow", "zz_rain", "zz_snow",
    ]  # fmt: skip
    assert [name for name, *_ in search_everywhere(catalogues, "rain", limit=2)] == ["zz-rain-snow", "zz_rain"]
    assert search_everywhere(catalogues, "tool-0342", limit=1)[0][:2] == ("tool-0342", 1.0)
    rarest = {"filter": {"name": {"$in": ["tool-0349", "tool-0001"]}}}
    assert [name for name, *_ in search_everywhere(catalogues, "snow", **rarest)] == ["tool-0001", "tool-0349"]
