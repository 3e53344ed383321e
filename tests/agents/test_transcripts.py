"""What is kept of a run, what it cost, and the same run again without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Image, ToolRegistry, ToolValidationError, tool
from toolcrib.agents import Agent, Prices, Replay, Run, Transcript, replay
from toolcrib.formats.saying import Tokens
from toolcrib.testing import SHAPES, ScriptedModel, call


class Shop:
    """A till that forgets nothing."""

    def __init__(self, stock: int = 5) -> None:
        self.stock = stock

    @tool
    async def sell(self, count: int) -> dict[str, int]:
        """Sell some."""
        if count > self.stock:
            raise LookupError("sold out")
        self.stock -= count
        return {"left": self.stock, "at": id(self)}

    @tool
    async def photo(self) -> Image:
        """A picture of the shop."""
        return Image(b"\x89PNG\r\n\x1a\n")


SCRIPT = [[call("sell", count=2), call("photo")], call("sell", count=9), "Sold two."]


async def a_run(**options: Any) -> Run:
    return await Agent(ScriptedModel(SCRIPT, **options), [Shop()], prices=Prices(2, 10)).run("Sell")


@pytest.mark.parametrize("as_sdk", [False, True], ids=["dict", "sdk"])
@pytest.mark.parametrize("format", SHAPES)
async def test_a_transcript_is_json_and_comes_back_the_same(format: str, as_sdk: bool, tmp_path: Path) -> None:
    transcript = (await a_run(format=format, as_sdk=as_sdk)).transcript
    path = transcript.save(tmp_path / "run.json")
    again = Transcript.load(path)
    assert again.to_json() == transcript.to_json() == json.loads(path.read_text(encoding="utf-8"))
    assert (again.ended, again.answer, len(again.steps), len(again.calls)) == ("answer", "Sold two.", 3, 3)
    played = await replay(again, [Shop()], ignore=["at"])
    assert (str(played), played.same) == ("all 3 calls went as recorded", True)
    assert played.runs[0].answer == "Sold two."


async def test_a_replay_stops_where_it_differs_and_says_how() -> None:
    transcript = (await a_run()).transcript
    shop = Shop(stock=4)
    played = await replay(transcript, [shop], ignore=["at"])
    assert str(played) == "call 1 (sell): data.left: 3 is expected, 2 came"
    assert (played.played, played.calls, played.same) == (1, 3, False)
    rest = await replay(transcript, [Shop(stock=20)], ignore=["at"], go_on=True)
    assert rest.played == 3
    assert [each.partition(":")[0] for each in rest.differences][-1] == "call 3 (sell)"


async def test_a_replay_of_a_run_that_goes_on_plays_those_before_it() -> None:
    agent = Agent(ScriptedModel([*SCRIPT, call("sell", count=1), "And one."]), [Shop()])
    first = await agent.run("Sell")
    second = await agent.run("One more", after=first)
    kept = Transcript.from_json(json.loads(json.dumps(second.to_json())))
    played = await replay(kept, [Shop()], ignore=["at"])
    assert (played.same, played.calls, len(played.runs)) == (True, 4, 2)


async def test_a_replay_asks_for_approval_again() -> None:
    @tool(safety_level="dangerous")
    async def erase() -> str:
        """Erase it."""
        return "gone"

    registry = ToolRegistry([erase], approve=lambda *_: True)
    run = await Agent(ScriptedModel([call("erase"), "Done."]), registry).run("Erase")
    refused = await replay(run.transcript, [erase])
    assert "approval_required" in str(refused)
    assert (await replay(run.transcript, [erase], approve=lambda *_: True)).same


def test_what_is_no_transcript_is_refused(tmp_path: Path) -> None:
    for text in ("{}", "[]", '{"task": "x", "steps": [{"nothing": 1}]}', "no JSON"):
        path = tmp_path / "run.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ToolValidationError, match=r"run\.json"):
            Transcript.load(path)


def test_an_empty_replay_is_told() -> None:
    assert str(Replay(1, 3, (), ())) == "stopped after 1 of 3 calls"


# What it cost


def test_prices_are_for_a_million_tokens_and_for_what_the_cache_had() -> None:
    tokens = Tokens(input=1_000_000, output=500_000, cached=600_000, written=100_000)
    assert Prices(3, 15, cached=0.3, written=3.75).of(tokens) == pytest.approx(0.9 + 0.18 + 0.375 + 7.5)
    assert Prices(3, 15).of(tokens) == pytest.approx(3 + 7.5)


async def test_the_cost_of_a_run_is_by_the_providers_count() -> None:
    async def model(messages: Any, tools: Any) -> Any:
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
        return {"choices": [{"message": {"role": "assistant", "content": "Hi."}}], "usage": usage}

    run = await Agent(model, prices=Prices(2, 10, cached=1, currency="EUR")).run("Hello")
    assert run.usage == Tokens(1000, 100, 400)
    assert run.cost == pytest.approx((600 * 2 + 400 * 1 + 100 * 10) / 1_000_000)
    assert run.to_json()["cost"] == run.cost
    assert run.to_json()["prices"]["currency"] == "EUR"
    assert (await Agent(model).run("Hello")).cost is None
