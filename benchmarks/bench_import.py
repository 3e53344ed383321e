"""Time and memory of importing each library, each in fresh processes; ``import pydantic`` with a model is the limit.

Run: make bench, or .venv-bench/bin/python benchmarks/bench_import.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from table import print_table

ROUNDS = 7
IMPORTS = {
    "pydantic (the limit)": "from pydantic import BaseModel, TypeAdapter\nclass M(BaseModel):\n    a: int",
    "toolcrib": "from toolcrib import tool, ToolRegistry",
    "toolregistry": "from toolregistry import ToolRegistry",
    "pydantic-ai": "from pydantic_ai import Agent, FunctionToolset",
    "langchain-core": "from langchain_core.tools import StructuredTool",
    "openai-agents": "from agents import function_tool",
    "fastmcp": "from fastmcp import FastMCP",
}
_PROGRAM = """
import json, resource, sys, time
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.process_time()
{imports}
seconds = time.process_time() - started
print(json.dumps([seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""


def measure(imports: str) -> tuple[float, float]:
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM.format(imports=imports)],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, megabytes = json.loads(answer.stdout.splitlines()[-1])
    return seconds, megabytes


def main() -> None:
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in IMPORTS}
    for _ in range(ROUNDS):
        for name, imports in IMPORTS.items():
            rounds[name].append(measure(imports))
    medians = {
        name: (statistics.median(s for s, _ in runs), statistics.median(m for _, m in runs))
        for name, runs in rounds.items()
    }
    ours = medians["toolcrib"][0]
    print_table(
        "Importing what it takes to define and run a tool",
        ("library", "CPU s", "MB", "times toolcrib"),
        [
            (name, f"{seconds:.3f}", f"{megabytes:.0f}", f"{seconds / ours:.2f}")
            for name, (seconds, megabytes) in sorted(medians.items(), key=lambda row: row[1])
        ],
    )


if __name__ == "__main__":
    main()
