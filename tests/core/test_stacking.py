"""The stacking rules: the table of the design, the ten sample tools, and the laws that hold for any tools."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import Rule, check, judge

FOUR_TYPES = ("type:parser", "type:captcha_solver", "type:proxy_manager", "type:anti_bot_service")
THREE_TYPES = ("type:parser", "type:anti_bot_service", "type:proxy_manager")

SAMPLES = {
    "playwright": ("browser", FOUR_TYPES, ("selenium", "undetected-chromedriver")),
    "selenium": ("browser", (*FOUR_TYPES, "undetected-chromedriver"), ("playwright",)),
    "undetected-chromedriver": ("browser", ("selenium", "type:parser"), ("playwright",)),
    "requests": ("http_client", THREE_TYPES, ()),
    "httpx": ("http_client", THREE_TYPES, ()),
    "beautifulsoup4": ("parser", ("type:browser", "type:http_client"), ()),
    "parsel": ("parser", ("type:browser", "type:http_client", "scrapy"), ()),
    "cloudscraper": ("anti_bot_service", ("type:parser",), ()),
    "scraperapi": ("anti_bot_service", ("type:browser", "type:http_client"), ()),
    "scrapy": ("framework", ("parsel", "type:proxy_manager", "type:anti_bot_service"), ()),
}


def spec(name: str, tool_type: str = "", accepts: tuple[str, ...] = (), refuses: tuple[str, ...] = ()) -> ToolSpec:
    return ToolSpec(
        name=name, description=name, tool_type=tool_type, compatibilities=accepts, incompatible_with=refuses
    )


SAMPLE_SPECS = [spec(name, *facts) for name, facts in SAMPLES.items()]


@pytest.mark.parametrize(("strict", "expected"), [(False, 40), (True, 25)])
def test_how_many_of_the_45_sample_pairs_are_compatible(strict: bool, expected: int) -> None:
    verdicts = check(SAMPLE_SPECS, strict=strict).verdicts
    assert len(verdicts) == 45
    assert sum(verdict.compatible for verdict in verdicts) == expected


@pytest.mark.parametrize(
    ("one", "other", "strict", "compatible", "rule"),
    [
        ("playwright", "selenium", False, False, Rule.REFUSED),
        ("playwright", "beautifulsoup4", False, True, Rule.ACCEPTED),
        ("selenium", "undetected-chromedriver", False, True, Rule.ACCEPTED),
        ("requests", "httpx", False, False, Rule.SAME_TYPE),
        ("scrapy", "selenium", False, True, Rule.NOTHING_AGAINST),
        ("scrapy", "selenium", True, False, Rule.NOT_LISTED),
        ("playwright", "scraperapi", True, True, Rule.ACCEPTED),
    ],
)
def test_each_rule_decides_a_sample_pair(one: str, other: str, strict: bool, compatible: bool, rule: Rule) -> None:
    verdict = judge(spec(one, *SAMPLES[one]), spec(other, *SAMPLES[other]), strict=strict)
    assert (verdict.compatible, verdict.rule) == (compatible, rule)
    assert repr(one) in verdict.reason
    assert repr(other) in verdict.reason


def test_a_refusal_beats_an_acceptance_of_either_side() -> None:
    assert not judge(spec("a", accepts=("b",)), spec("b", refuses=("a",))).compatible
    assert not judge(spec("a", accepts=("b",), refuses=("type:*",)), spec("b")).compatible


def test_types_are_matched_by_name_and_by_star() -> None:
    browser, untyped = spec("b", "browser"), spec("u")
    assert judge(spec("a", refuses=("type:browser",)), browser).rule is Rule.REFUSED
    assert judge(spec("a", refuses=("type:parser",)), browser).rule is Rule.NOTHING_AGAINST
    assert judge(spec("a", "browser", accepts=("type:*",)), browser).rule is Rule.ACCEPTED
    assert judge(spec("a", refuses=("type:*",)), untyped).rule is Rule.REFUSED
    assert judge(spec("a", refuses=("type:",)), untyped).rule is Rule.NOTHING_AGAINST


def test_tools_without_a_type_are_not_of_the_same_type() -> None:
    assert judge(spec("a"), spec("b")).rule is Rule.NOTHING_AGAINST


def test_strict_leaves_tools_without_a_list_open() -> None:
    assert judge(spec("a", "x"), spec("b", "y"), strict=True).compatible


def test_a_report_holds_the_whole_table_and_its_conflicts() -> None:
    report = check([spec("a", "x"), spec("b", "x"), spec("c", "y", refuses=("a",))])
    assert report.tools == ("a", "b", "c")
    assert [(verdict.left, verdict.right) for verdict in report.verdicts] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [verdict.rule for verdict in report.conflicts] == [Rule.SAME_TYPE, Rule.REFUSED]
    assert not report.compatible
    assert report.reason == report.conflicts[0].reason


def test_a_tool_given_twice_counts_once_and_small_sets_are_compatible() -> None:
    assert check([spec("a", "x"), spec("a", "x")]).verdicts == ()
    assert check([]).compatible


NAMES = list("abcdef")
TYPES = ["", "x", "y"]
ENTRIES = st.lists(st.sampled_from([*NAMES, "type:x", "type:y", "type:*"]), max_size=3, unique=True).map(tuple)


@st.composite
def catalogues(draw: st.DrawFn, most: int = 6) -> list[ToolSpec]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=most, unique=True))
    return [spec(name, draw(st.sampled_from(TYPES)), draw(ENTRIES), draw(ENTRIES)) for name in names]


@given(catalogues(), st.booleans())
def test_the_relation_is_symmetric(specs: list[ToolSpec], strict: bool) -> None:
    for one, other in permutations(specs, 2):
        assert judge(one, other, strict=strict) == judge(other, one, strict=strict)


@given(catalogues(), st.data(), st.booleans())
def test_one_more_incompatibility_never_makes_a_set_compatible(
    specs: list[ToolSpec], data: st.DataObject, strict: bool
) -> None:
    before = check(specs, strict=strict)
    position = data.draw(st.integers(0, len(specs) - 1))
    chosen = specs[position]
    entry = data.draw(st.sampled_from([*NAMES, "type:x", "type:y", "type:*"]))
    changed = [*specs]
    changed[position] = chosen.with_changes(incompatible_with=(*chosen.incompatible_with, entry))
    after = check(changed, strict=strict)
    assert before.compatible or not after.compatible
    for old, new in zip(before.verdicts, after.verdicts, strict=True):
        assert old.compatible or not new.compatible


@given(catalogues())
def test_strict_never_allows_more(specs: list[ToolSpec]) -> None:
    for one, other in combinations(specs, 2):
        assert judge(one, other).compatible or not judge(one, other, strict=True).compatible


@given(catalogues(), st.booleans())
def test_a_set_is_compatible_exactly_where_all_its_pairs_are(specs: list[ToolSpec], strict: bool) -> None:
    pairs = all(judge(one, other, strict=strict).compatible for one, other in combinations(specs, 2))
    assert check(specs, strict=strict).compatible == pairs
