"""The indexes: scores between 0 and 1, best first, nothing left of what was removed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.adapters.indexes.derived import DerivedIndex
from toolcrib.adapters.indexes.memory import MemoryIndex
from toolcrib.adapters.indexes.store_text import StoreTextIndex
from toolcrib.adapters.indexes.words import search_words, words
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Change, Index

WORDS = ["weather", "forecast", "city", "map", "letter", "send"]
texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
documents = st.lists(
    st.builds(
        lambda name, description, tags: ToolSpec(
            name=name, description=description, tags=tuple(tags.split())
        ).to_dict(),
        st.sampled_from(["one", "two_maps", "sendLetter", "w"]),
        texts,
        texts,
    ),
    unique_by=lambda document: document["name"],
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getWeather", ["get", "weather"]),
        ("get_weather-v2.1", ["get", "weather", "v2", "1"]),
        ("Cities and classes", ["city", "and", "classe"]),
        ("Übersicht naïve", ["ubersicht", "naive"]),
        ("analysis status glass gas", ["analysis", "status", "glass", "gas"]),
        ("", []),
    ],
)
def test_text_comes_apart_into_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_little_words_count_only_alone() -> None:
    assert search_words("what is the weather") == ["weather"]
    assert search_words("what is the") == ["what", "is", "the"]


@given(documents, texts)
def test_a_search_is_ordered_and_bounded(tools: list[dict[str, object]], text: str) -> None:
    index = MemoryIndex()
    index.add(tools)
    index.add(tools[:1])  # again is not twice
    matches = index.search(text, limit=3)
    assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
    assert all(0 < match.score <= 1 and match.reason for match in matches)
    assert len(matches) <= 3
    assert len(index) == len(tools)
    index.remove([str(tool["name"]) for tool in tools])
    assert index.search(text) == []
    assert len(index) == 0


@given(documents, documents, texts)
def test_a_derived_index_follows_its_store(
    before: list[dict[str, object]], after: list[dict[str, object]], text: str
) -> None:
    store = MemoryStore()
    index = DerivedIndex(store)
    store.commit([Change(str(tool["name"]), dict(tool)) for tool in before])
    index.search(text)
    names = {str(tool["name"]) for tool in after}
    store.commit([Change(str(tool["name"]), None) for tool in before if tool["name"] not in names])
    store.commit([Change(str(tool["name"]), dict(tool)) for tool in after])
    fresh = MemoryIndex()
    fresh.add(after)
    assert index.search(text) == fresh.search(text)


def test_the_last_word_may_be_unfinished() -> None:
    index = MemoryIndex()
    index.add([ToolSpec(name="weather", description="").to_dict(), ToolSpec(name="wea", description="").to_dict()])
    assert [match.name for match in index.search("wea")] == ["wea", "weather"]
    assert index.search("we") == []


def test_the_stores_index_ranks_by_fields_and_rare_words(tmp_path: object) -> None:
    store = SqliteStore(f"{tmp_path}/tools.db")
    tools = [ToolSpec(name=f"tool-{number}", description="about a city") for number in range(20)]
    tools += [
        ToolSpec(name="weather", description="in a city"),
        ToolSpec(name="other", description="weather and more"),
        ToolSpec(name="tagged", description="x", tags=("forecasts",)),
    ]
    store.commit([Change(tool.name, tool.to_dict()) for tool in tools])
    index: Index = StoreTextIndex(store)
    assert [match.name for match in index.search("weather city", limit=2)] == ["weather", "other"]
    assert [match.name for match in index.search("forecast")] == ["tagged"]
    assert index.search('zebra" OR name:*') == index.search("  ") == []
    assert all(0 < match.score <= 1 for match in index.search("weather city forecast", limit=100))
    store.close()
