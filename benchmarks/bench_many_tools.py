"""What 45, 500 and 2,500 tools cost a model in tokens, by how they are handed over; and whether a search finds them.

The tokens are those of cl100k_base, of the JSON (or of the text) that is sent; a provider's own wording of it may
differ a little. The requests are whole sentences of users, given to ``search_tools`` as they are.
Run: make bench, or .venv-bench/bin/python benchmarks/bench_many_tools.py [--data FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from many_tools import Collection, Request, collections
from table import print_table

from toolcrib import ToolRegistry, tool
from toolcrib.core.spec import ToolSpec

SIZES = (45, 500, 2_500)
MOST_REQUESTS = 500
DATA = Path(__file__).parent / "../../shared/retrieval"

Count = Callable[[Any], int]


def counter() -> Count:
    """Counts tokens; the ranks come with a package that is installed, so nothing is downloaded."""
    found = find_spec("llama_index.core")
    if found is not None and found.origin is not None:
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(found.origin).parent / "_static/tiktoken_cache"))
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")

    def count(given: Any) -> int:
        return len(encoding.encode(given if isinstance(given, str) else json.dumps(given, separators=(",", ":"))))

    return count


@tool
async def nothing() -> None:
    """Do nothing."""


def registry_of(specs: list[ToolSpec]) -> ToolRegistry:
    return ToolRegistry([nothing.with_spec(spec) for spec in specs])


def told_at_first(definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What OpenAI's models are told of deferred functions: name and description; of namespaces those alone."""
    shown = ("type", "name", "description")
    return [
        {key: each[key] for key in shown if key in each} if each.get("defer_loading") or "tools" in each else each
        for each in definitions
    ]


async def tokens(registry: ToolRegistry, requests: list[Request], count: Count) -> list[int]:
    anthropic = registry.definitions("anthropic", defer=True)
    responses = registry.definitions("openai-responses", defer=True)
    spaces = registry.definitions("openai-responses", defer=True, namespaces="category")
    searched = count(registry.definitions("openai", defer=True))
    answers = [await answer(registry, request.text) for request in requests[:100]]
    return [
        count(registry.definitions("openai")),
        count("\n".join(each["signature"] for each in registry.definitions("compact"))),
        count([each for each in anthropic if not each.get("defer_loading")]),
        count(told_at_first(responses)),
        count(told_at_first(spaces)),
        searched,
        searched + round(statistics.mean(map(count, answers))),
    ]


async def answer(registry: ToolRegistry, text: str) -> str:
    """What a model of OpenAI Chat reads in answer to a search."""
    function = {"name": "search_tools", "arguments": json.dumps({"query": text})}
    [message] = await registry.execute_calls({"tool_calls": [{"id": "c", "type": "function", "function": function}]})
    return str(message["content"])


async def found(registry: ToolRegistry, requests: list[Request]) -> tuple[float, float, float, float]:
    """Recall at 5 and 10, at 10 if every word had to occur, and the CPU ms of a search."""
    at5 = at10 = every = wanted = 0
    started = time.process_time()
    for request in requests:
        result = await registry.execute("search_tools", {"query": request.text, "limit": 10})
        names = [spec.name for spec in result.data.tools]
        at5 += sum(name in names[:5] for name in request.wanted)
        at10 += sum(name in names for name in request.wanted)
        wanted += len(request.wanted)
    spent = (time.process_time() - started) / len(requests) * 1_000
    for request in requests:
        names = [each.name for each in registry.search(request.text, 10)]
        every += sum(name in names for name in request.wanted)
    return at5 / wanted, at10 / wanted, every / wanted, spent


async def measure(sets: list[Collection], count: Count) -> None:
    costs: list[list[object]] = []
    rates: list[list[object]] = []
    whole = [(one, len(one.specs)) for one in sets[1:]]
    for tools, size in [*((sets[0], size) for size in SIZES), *whole]:
        specs, requests = tools.sample(size)
        requests = random.Random(2).sample(requests, min(MOST_REQUESTS, len(requests)))
        registry = registry_of(specs)
        if tools is sets[0]:
            costs.append([f"{size:,}", *(f"{each:,}" for each in await tokens(registry, requests, count))])
        registry.definitions("openai", defer=True)
        at5, at10, every, spent = await found(registry, requests)
        rate = [f"{size:,}", tools.source, f"{len(requests):,}", f"{at5:.1%}", f"{at10:.1%}", f"{every:.1%}"]
        rates.append([*rate, f"{spent:.1f}"])
    header = [
        "tools", "all definitions", "compact", "deferred, Anthropic", "deferred, Responses",
        "deferred, Responses, namespaces", "search, at first", "search, with one answer",
    ]  # fmt: skip
    print_table("Tokens that a model reads", header, costs)
    header = ["tools", "", "requests", "recall@5", "recall@10", "recall@10, every word", "CPU ms a search"]
    print_table("Wanted tools that search_tools finds", header, rates)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Tokens and recall of many tools.")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TOOLCRIB_RETRIEVAL_SETS", DATA)))
    asyncio.run(measure(collections(parser.parse_args().data), counter()))
