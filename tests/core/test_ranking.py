"""What ranks first: terms, weights, the one score, and its reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.core.ranking import ENOUGH, FIELDS, Search, index_words, terms_of

WORDS = ["weather", "forecasts", "city", "map", "letter", "send", "the"]
texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
documents = st.fixed_dictionaries({
    "name": st.sampled_from(["one", "two_maps", "sendLetter", "w"]), "description": texts, "tags": st.lists(texts),
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getWeather", ["get", "weather"]),
        ("get_weather-v2.1", ["get", "weather", "v2", "1"]),
        ("HTTPServer2XX", ["httpserver2", "xx"]),
        ("Cities and classes, city", ["city", "and", "classe"]),
        ("Übersicht naïve", ["ubersicht", "naive"]),
        ("analysis status glass gas", ["analysis", "status", "glass", "gas"]),
        ("日本 Ελλάδα \ud800 \0 🔧", ["日本", "ελλαδα"]),
        ("x" * 200, ["x" * 64]),
        ("", []),
    ],
)
def test_text_comes_apart_into_terms(text: str, expected: list[str]) -> None:
    assert terms_of(text) == expected


@given(st.text())
def test_terms_are_letters_and_digits(text: str) -> None:
    """So a store needs no escapes, and parts them at blanks."""
    assert all(term and len(term) <= 64 and term.isalnum() for term in terms_of(text))


def test_little_words_count_only_alone() -> None:
    assert Search.of("what is the weather").terms == ("weather",)
    assert Search.of("what is the").terms == ("what", "is", "the")
    assert Search.of(" ?! ").terms == ()
    assert len(Search.of(" ".join(map(str, range(99)))).terms) == 32


def test_index_words_tell_the_field() -> None:
    """What stores have on disk. If this changes, each of them needs a migration that makes its words anew."""
    document: dict[str, Any] = {
        "name": "get_forecast", "description": "Forecasts the weather", "tags": ["sky", 7],
        "capabilities": ["forecast"], "parameters": {"properties": {"cityName": {"description": "a town"}, "no": 1}},
        "manual": "Read this", "credentials": {"key": "hunter2"}, "metadata": {"x": "secret"}, "usage_notes": None,
    }  # fmt: skip
    assert index_words(document).split() == [
        "7get", "8forecast", "6sky", "5the", "5weather", "3city", "3name", "3a", "3town", "3no", "2read", "2this",
    ]  # fmt: skip
    everywhere = {field: "x" for field in FIELDS if field != "parameters"}
    assert index_words({**everywhere, "parameters": {"properties": {"x": {}}}}) == "9x"


def test_a_huge_manual_is_read_in_part() -> None:
    words = index_words({"name": "big", "manual": " ".join(f"w{number}" for number in range(500_000))})
    assert len(words.split()) == 5000
    assert words.startswith("7big ")


def rank(text: str, *tools: dict[str, Any]) -> dict[str, float]:
    """The tools that hold any of the words, with their scores, best first."""
    search = Search.of(text)
    held = {tool["name"]: search.holds(index_words(tool)) for tool in tools}
    counts = [sum(map(bool, column)) for column in zip(*held.values(), strict=True)]
    return dict(search.rank({name: strengths for name, strengths in held.items() if any(strengths)}, counts))


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": "", **fields}


def test_names_before_tags_before_descriptions() -> None:
    by_field = rank("rain", tool("a", description="rain"), tool("b", tags=["rain"]), tool("c_rain"), tool("d"))
    assert list(by_field) == ["c_rain", "b", "a"]
    assert list(rank("rain", tool("b_rain"), tool("a_rain"))) == ["a_rain", "b_rain"], "equals by name"


def test_the_very_name_is_first() -> None:
    rival = tool("get_rain", display_name="rain", tags=["rain"], capabilities=["rain"], description="rain rain")
    assert rank("Rain", rival, tool("rain")) == {"rain": 1.0, "get_rain": 0.9}
    assert list(rank("get-rain", tool("get_rain", tags=["get", "rain"]), tool("get-rain"))) == ["get-rain", "get_rain"]


def test_rare_words_count_more() -> None:
    common = [tool(f"tool-{number}", description="about a city") for number in range(20)]
    found = rank("zoo city", *common, tool("x", description="a zoo"), tool("y", description="zoo in the city"))
    assert list(found)[:3] == ["y", "x", "tool-0"]


def test_what_everybody_has_is_common_and_no_more() -> None:
    search = Search.of("zoo city")
    held = {"a": [0.5, 0.0], "b": [0.0, 0.5]}
    assert search.rank(held, [3, ENOUGH]) == search.rank(held, [3, 100 * ENOUGH])


def test_the_last_word_may_be_unfinished() -> None:
    assert list(rank("wea", tool("weather"), tool("my_wea"))) == ["my_wea", "weather"]
    assert rank("we", tool("weather")) == {}
    assert list(rank("wea map", tool("weather"), tool("map"))) == ["map"]


@given(st.lists(documents, unique_by=lambda document: document["name"]), texts)
def test_scores_are_bounded_and_every_hit_has_a_reason(tools: list[dict[str, Any]], text: str) -> None:
    scores = rank(text, *tools)
    assert list(scores) == sorted(scores, key=lambda name: (-scores[name], name))
    for document in tools:
        reason = Search.of(text).reason(document)
        assert (document["name"] in scores) == bool(reason)
        assert 0 < scores.get(document["name"], 1) <= 1


def test_a_reason_names_words_and_fields() -> None:
    document = tool("weather_map", description="A map of a city", tags=["city"])
    assert Search.of("map of the cit").reason(document) == "'map' in name; 'cit' in tags; 'map', 'cit' in description"
