"""Providers' endpoints as models: their own SDKs, talking to a model of ours on a loopback port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.providers import ANSWER, QUESTION, scripted_providers
from tests.test_bare_install import run_bare

from toolcrib import MissingConfigError, tool
from toolcrib.agents import Agent, AnthropicModel, OpenAIModel, Prices

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")


@tool
async def weather(city: str) -> str:
    """The weather in a city now."""
    return {"Paris": "rain at 18 degrees", "Oslo": "snow at -4 degrees"}[city]


@pytest.fixture(scope="module")
def providers() -> Iterator[dict[str, str]]:
    with scripted_providers() as environment:
        yield environment


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("make", [OpenAIModel, AnthropicModel])
async def test_a_run_with_each_provider(make: Any, providers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The key and the address are found in the environment; the tokens are those that the provider counted."""
    for name, value in providers.items():
        monkeypatch.setenv(name, value)
    model = make("m", metadata={"user_id": "ada"})
    run = await Agent(model, [weather], system="Be brief.", prices=Prices(1, 1)).run(QUESTION)
    assert (run.answer, run.ended) == (ANSWER, "answer"), run.reason
    assert (run.usage.input, run.usage.output, run.usage.estimated) == (3, 3, False)
    assert run.cost == pytest.approx(6 / 1_000_000)
    assert run.transcript.model == "m"
    await model.close()


async def test_an_address_of_ones_own_needs_no_key(no_keys: None, providers: dict[str, str]) -> None:
    model = OpenAIModel("llama", base_url=providers["OPENAI_BASE_URL"])
    assert (await Agent(model, [weather]).run(QUESTION)).answer == ANSWER
    assert repr(model) == "OpenAIModel('llama')"
    await model.close()


class _Recorder:
    """What AnthropicModel sends, to a client of the user's own."""

    def __init__(self) -> None:
        self.messages = self
        self.requests: list[dict[str, Any]] = []

    async def create(self, **request: Any) -> Any:
        self.requests.append(request)
        return {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}


async def test_anthropic_gets_the_system_prompt_where_it_wants_it() -> None:
    client = _Recorder()
    model = AnthropicModel("m", client=client, max_tokens=77)
    assert (await Agent(model, system="Be brief.").run("Hello")).answer == "Hi."
    assert client.requests == [
        {"model": "m", "max_tokens": 77, "system": "Be brief.", "messages": [{"role": "user", "content": "Hello"}]}
    ]


@pytest.mark.parametrize(("make", "variable"), [(OpenAIModel, "OPENAI_API_KEY"), (AnthropicModel, "ANTHROPIC_API_KEY")])
def test_a_missing_key_is_named(make: Any, variable: str, no_keys: None) -> None:
    with pytest.raises(MissingConfigError, match=variable):
        make("m")


async def test_what_a_provider_refuses_is_told(providers: dict[str, str]) -> None:
    model = OpenAIModel("m", base_url=providers["OPENAI_BASE_URL"], api_key="k", max_tokens=7)
    run = await Agent(model, []).run("No tools at all")
    assert run.ended == "model_failed"
    assert run.reason.startswith("the model failed: BadRequestError: ")
    await model.close()


@pytest.mark.parametrize(("name", "extra"), [("OpenAIModel", "openai"), ("AnthropicModel", "anthropic")])
def test_a_missing_sdk_is_named_with_its_install_line(name: str, extra: str) -> None:
    answer = run_bare(f"from toolcrib.agents import {name}\n{name}('m', api_key='k')")
    assert answer.returncode != 0
    assert f"pip install '.[{extra}]'" in answer.stderr
