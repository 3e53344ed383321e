"""A stack becomes a pipeline of the bricks that ship, in the order in which its items fit."""

from __future__ import annotations

import tomllib

import pytest
from pydantic import Field

from toolcrib.core.errors import IncompatibleError, ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.stacking import Brick, BrickConfig, Page, Request, Stack, lacking, plan
from toolcrib.stacking.drafting import as_toml
from toolcrib.toolsets.scraping import BRICKS, scraping_specs
from toolcrib.toolsets.scraping.practice import Site


def stack(*names: str) -> Stack:
    return Stack(tuple(scraping_specs()[name] for name in names), dict.fromkeys(names, ()))


def row(*names: str) -> list[str]:
    return [step.tool for step in stack(*names).pipeline().definition.ordered_steps]


@pytest.mark.parametrize("names", [("sqlite", "parsel", "httpx"), ("parsel", "httpx", "sqlite")])
def test_what_fetches_comes_first_then_what_reads_then_what_stores(names: tuple[str, ...]) -> None:
    assert row(*names) == ["httpx", "parsel", "sqlite"]


def test_proxies_come_before_the_client_and_captchas_behind_it() -> None:
    names = ("jsonlines", "anticaptcha", "parsel", "requests", "proxy-list")
    assert row(*names) == ["proxy-list", "requests", "anticaptcha", "parsel", "jsonlines"]


def test_what_does_the_same_work_stands_in() -> None:
    made = stack("httpx", "parsel", "curl_cffi").pipeline()
    assert [step.tool for step in made.definition.ordered_steps] == ["httpx", "parsel"]
    assert made.definition.error_handling == {"error": {"retry_with": [{"tool": "curl_cffi", "config": {}}]}}
    assert made.check().ok


async def test_a_plan_of_the_samples_runs(site: Site) -> None:
    known = [scraping_specs()[name] for name in ("httpx", "scraperapi", "parsel")]
    best = plan(known, ["async_requests", "css_selectors"], lacks=lacking())[0]
    look = {"rows": "article.book", "selectors": {"title": "h3 a"}}
    items = await best.pipeline(start=f"{site.url}/books/1", config={"parsel": look}).collect()
    assert len(items) == 4
    titles = await best.pipeline(start=[f"{site.url}/books/1"], concurrency=1, name="mine").collect()
    assert len(titles) == 1


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("parsel",), "a pipeline begins with a Request, but 'parsel' takes a Page; want a capability too"),
        (("httpx", "csv"), "behind 'httpx' comes a Page, but 'csv' takes a Record; want a capability too"),
        (("httpx", "csv", "extruct", "sqlite"), ""),
    ],
)
def test_a_stack_that_makes_no_row_says_what_lacks(names: tuple[str, ...], said: str) -> None:
    if not said:
        assert row(*names) == ["httpx", "extruct", "csv"]
        return
    with pytest.raises(IncompatibleError, match=said):
        stack(*names).pipeline()


def test_a_tool_without_a_brick_or_outside_of_the_stack_is_named() -> None:
    nobody = ToolSpec(name="nobody", description="x")
    with pytest.raises(IncompatibleError, match=r"no brick for 'nobody' here \(no_brick\)"):
        Stack((nobody,), {}).pipeline()
    with pytest.raises(ToolNotFoundError, match="'httpy'; did you mean 'httpx'"):
        stack("httpx").pipeline(config={"httpy": {}})


def test_bricks_of_ones_own_may_be_given() -> None:
    class Mine(Brick[Request, Page]):
        spec = ToolSpec(name="mine", description="x")
        takes = Request
        gives = Page

        async def process(self, item: Request, _context: object, /) -> list[Page]:
            return []

    made = Stack((Mine.spec,), {}).pipeline(bricks={"mine": Mine}, start="u")
    assert (made.name, made.definition.start) == ("mine", ("u",))


def test_a_description_of_many_lines_stays_a_comment_of_the_file() -> None:
    class Mine(Brick[Request, Page]):
        """Its spec and its setting are described by somebody who would like to be read as settings."""

        class Config(BrickConfig):
            depth: int = Field(1, description="how deep\nobey_robots = false")

        spec = ToolSpec(name="mine", description="Fetches.\nobey_robots = false\r\x00\u2028now")
        takes = Request
        gives = Page

        async def process(self, item: Request, _context: object, /) -> list[Page]:
            return []

    made = Stack((Mine.spec,), {}).pipeline(bricks={"mine": Mine}, start="u")
    written = tomllib.loads(as_toml(made, {"mine": Mine}))
    assert written == {"name": "mine", "start": ["u"], "steps": [{"tool": "mine"}]}


def test_what_is_lacking_here_is_known_of_every_brick() -> None:
    lacks = lacking()
    assert lacks(scraping_specs()["parsel"]) == ()
    assert "'SCRAPERAPI_KEY'" in lacks(scraping_specs()["scraperapi"])[0]
    assert lacking(secrets={"SCRAPERAPI_KEY": "k"})(scraping_specs()["scraperapi"]) == ()
    assert "(no_brick)" in lacks(ToolSpec(name="nobody", description="x"))[0]
    assert "(no_brick)" in lacking({})(scraping_specs()["parsel"])[0]


def test_the_settings_to_begin_with_are_enough_for_every_brick() -> None:
    for brick in BRICKS.values():
        assert brick(brick.example).config
