"""A brick can be called as a tool, and a tool can be a step: both in one JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.stacking.bricks import BRICKS, Fetch, Keep, NeedsMuch, Read, Through, spec
from toolcrib import tool
from toolcrib.core.errors import (
    InvalidArgumentsError,
    MissingDependencyError,
    ToolFailedError,
    ToolValidationError,
)
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define import make_tool
from toolcrib.stacking import BrickConfig, Page, Pipeline, Record, Request, StepContext
from toolcrib.stacking.brick import AnyBrick, Brick
from toolcrib.stacking.brick_tools import brick_tool, tool_spec
from toolcrib.stacking.shapes import shape_of
from toolcrib.stacking.tool_bricks import tool_brick


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Fetch.reset(lambda request: (404 if "gone" in request.url else 200, f"{request.method} {request.url}"))


def called(brick: type[AnyBrick], **options: Any) -> Tool:
    return brick_tool(brick, **{"place": lambda name: f"/kept/{name}", **options})


# A brick as a tool


async def test_a_fetcher_takes_a_url_and_gives_a_page() -> None:
    fetch = called(Fetch)
    assert fetch.spec.parameters["required"] == ["url"]
    assert await fetch.execute({"url": "u", "method": "POST"}) == {
        "url": "u", "status": 200, "headers": {}, "html": "POST u",
    }  # fmt: skip
    assert (await fetch.execute({"url": "gone"}))["status"] == 404
    with pytest.raises(InvalidArgumentsError, match="'url'"):
        await fetch.execute({})
    assert Fetch.opened == 0


async def test_a_parser_takes_html_and_gives_rows_and_links() -> None:
    answer = await called(Read).execute({"html": "a b >x", "url": "https://site/y/"})
    assert answer["records"] == [{"word": "a"}, {"word": "b"}]
    assert [link["url"] for link in answer["follow"]] == ["https://site/y/x"]


async def test_a_store_takes_rows_and_is_no_longer_safe() -> None:
    keep = called(Keep)
    answer = await keep.execute({"records": [{"word": "a"}, {"word": "b"}], "refuse": "c"})
    assert answer == {"stored": [{"where": "memory", "new": True}] * 2}
    assert (Keep.kept, Keep.batches) == (["a", "b"], [2])
    assert keep.spec.safety_level is SafetyLevel.LOW_RISK
    with pytest.raises(ToolFailedError, match="does not like this word"):
        await keep.execute({"records": [{"word": "c"}], "refuse": "c"})


async def test_what_changes_a_request_gives_it_back_changed() -> None:
    answer = await called(Through).execute({"url": "u", "headers": {"A": "b"}})
    assert answer == {"url": "u", "method": "GET", "headers": {"A": "b"}, "body": "", "proxy": f"p{Through.turn}"}


async def test_what_is_missing_is_told_at_the_call() -> None:
    with pytest.raises(MissingDependencyError, match="pip install much"):
        await called(NeedsMuch).execute({"url": "u"})


class Filing(Read):
    class Config(BrickConfig):
        file: str = ""
        program: str = "own"

    spec = spec("filing", "parser")
    files = ("file",)
    private = ("program",)

    def process(self, item: Page, context: StepContext, /) -> Sequence[Record]:
        return [Record({"file": self.config.file, "program": self.config.program})]


async def test_files_have_a_place_of_their_own_and_what_is_private_is_no_parameter() -> None:
    filing = called(Filing)
    assert await filing.execute({"html": "", "file": "a"}) == {"records": [{"file": "/kept/a", "program": "own"}]}
    assert await filing.execute({"html": ""}) == {"records": [{"file": "", "program": "own"}]}
    with pytest.raises(InvalidArgumentsError, match="no argument 'program'"):
        await filing.execute({"html": "", "program": "evil"})


async def test_a_picture_comes_as_it_is() -> None:
    class Picture(Brick[Request, Page]):
        spec = spec("picture", "http_client")
        takes = Request
        gives = Page

        async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
            return [Page(item, item.url, 200, b"\x89PNG", {"content-type": "image/png"})]

    answer = await called(Picture).execute({"url": "u"})
    assert (answer["html"], answer["body_base64"]) == ("", "iVBORw==")


def test_the_spec_of_a_called_brick_says_how_it_runs() -> None:
    assert tool_spec(Fetch).binding.python == "fetch"
    assert tool_spec(Keep).parameters["properties"].keys() == {"records", "refuse"}


# A tool as a brick


def entry(function: Any, tool_type: str = "", **metadata: Any) -> type[AnyBrick]:
    return tool_brick(make_tool(function, tool_type=tool_type, description="x", metadata=metadata))


def bricks(**more: type[AnyBrick]) -> dict[str, Any]:
    return {**BRICKS, **more}


async def rows(*steps: Any, **more: type[AnyBrick]) -> list[Any]:
    items = await Pipeline.of(*steps, bricks=bricks(**more)).collect(["https://site/u"])
    return [dict(item.data) if isinstance(item, Record) else item for item in items]


async def test_rows_go_through_a_tool_with_the_settings_of_the_step() -> None:
    def louder(records: list[dict[str, str]], mark: str = "!") -> dict[str, Any]:
        return {"records": [{"word": row["word"] + mark} for row in records]}

    found = await rows("fetch", "read", ("louder", {"mark": "?"}), louder=entry(louder))
    assert sorted(row["word"] for row in found) == ["GET?", "https://site/u?"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"a": 1}, [{"a": 1}]),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 2}]),
        ({"records": [{"a": 1}]}, [{"a": 1}]),
        ({"records": []}, []),
        (None, []),
        ([], []),
    ],
)
async def test_an_answer_is_one_row_or_several_or_none(answer: Any, expected: list[Any]) -> None:
    def answering(html: str, url: str) -> Any:
        assert (html, url) == ("GET https://site/u", "https://site/u")
        return answer

    assert await rows("fetch", "answering", answering=entry(answering, "parser")) == expected


async def test_a_tool_fetches_and_its_links_are_followed() -> None:
    def fetching(url: str) -> dict[str, Any]:
        return {"html": f"at {url.rpartition('/')[2]}", "follow": ["v"] if url.endswith("u") else []}

    found = await rows("fetching", "read", fetching=entry(fetching, "http_client"))
    assert sorted(row["word"] for row in found) == ["at", "at", "u", "v"]


async def test_a_status_that_a_tool_tells_is_a_failure_as_any_other() -> None:
    def fetching(url: str) -> dict[str, Any]:
        return {"html": "", "status": 503, "url": url}

    run = await Pipeline.of("fetching", "read", bricks=bricks(fetching=entry(fetching, "browser"))).run(["u"])
    assert (run.failed, run.failures[0].kind) == (1, "503_error")


async def test_an_answer_that_is_no_item_is_a_failure_that_says_so() -> None:
    def answering(html: str) -> int:
        return 42

    run = await Pipeline.of("fetch", "answering", bricks=bricks(answering=entry(answering, "parser"))).run(["u"])
    assert "it answered 42, which is no Record" in run.failures[0].reason


async def test_rows_that_a_tool_makes_of_one_row_are_different_rows() -> None:
    def twice(records: list[dict[str, str]]) -> list[dict[str, str]]:
        return [*records, *records]

    items = await Pipeline.of("fetch", "read", "twice", bricks=bricks(twice=entry(twice))).collect(["u"])
    assert len({item.key for item in items}) == len(items) == 4


async def test_a_tool_is_told_only_what_its_schema_speaks_of() -> None:
    @tool
    def strict(html: str) -> dict[str, int]:
        """Takes nothing but the page."""
        return {"length": len(html)}

    closed = strict.with_spec(strict.spec.with_changes(tool_type="parser"))
    assert await rows("fetch", "strict", strict=tool_brick(closed)) == [{"length": 18}]


@pytest.mark.parametrize(
    ("tool_type", "said", "shape"),
    [
        ("http_client", {}, "Request Page"),
        ("parser", {}, "Page Record"),
        ("data_storage", {}, "Record Stored"),
        ("proxy_manager", {}, "Request Request"),
        ("captcha_solver", {}, "Page Page"),
        ("whatever", {}, "Record Record"),
        ("parser", {"takes": "record"}, "Record Record"),
        ("", {"takes": "Request", "gives": "Record"}, "Request Record"),
    ],
)
def test_what_a_tool_takes_and_gives_follows_from_its_type_or_its_metadata(
    tool_type: str, said: dict[str, str], shape: str
) -> None:
    known = ToolSpec(name="x", description="x", tool_type=tool_type, metadata={"brick": said} if said else {})
    assert " ".join(kind.__name__ for kind in shape_of(known)) == shape


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"takes": "pages"}, "takes 'pages', which no item is called; did you mean 'Page'"),
        ({"takes": "stored"}, "takes 'stored', which no item is called; use one of 'Request', 'Page', 'Record'"),
        ({"gives": 3}, "gives 3, which no item is called"),
        ({"give": "page"}, "has 'give'; it knows 'takes' and 'gives'"),
        ("page", "must be an object"),
    ],
)
def test_a_shape_that_is_none_is_named(said: Any, complaint: str) -> None:
    with pytest.raises(ToolValidationError, match=complaint):
        shape_of(ToolSpec(name="x", description="x", metadata={"brick": said}))
