"""The specs: the ten sample tools as they were, and one for every brick."""

from __future__ import annotations

from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import check
from toolcrib.stacking import plan
from toolcrib.toolsets.scraping import BRICKS, scraping_specs

SAMPLES = (
    "playwright",
    "selenium",
    "undetected-chromedriver",
    "requests",
    "httpx",
    "beautifulsoup4",
    "parsel",
    "cloudscraper",
    "scraperapi",
    "scrapy",
)


def test_the_ten_sample_tools_ship_and_their_pairs_are_judged_as_they_were() -> None:
    specs = [scraping_specs()[name] for name in SAMPLES]
    assert sum(verdict.compatible for verdict in check(specs).verdicts) == 40
    assert sum(verdict.compatible for verdict in check(specs, strict=True).verdicts) == 25


def test_every_brick_has_an_entry_that_could_be_catalogued() -> None:
    for name, brick in BRICKS.items():
        spec = scraping_specs()[name]
        assert brick.spec is spec
        assert spec.tool_type
        assert spec.capabilities
        assert spec.execution_mode in ("sync", "async")
        assert spec.package_name
        assert spec.pip_install_command.startswith("pip install ")
        assert ToolSpec.parse(spec.to_dict()) == spec


def test_the_entries_are_enough_to_plan_with() -> None:
    best = plan(scraping_specs().values(), ["javascript_rendering", "html_parsing", "data_storage"], limit=3)
    assert [len(stack.tools) for stack in best] == [3, 3, 3]
    assert best[0].names == ("playwright", "beautifulsoup4", "csv")
    assert not best[0].required_config
