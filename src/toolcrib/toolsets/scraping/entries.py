"""The catalogue entries of the scraping tools: those that ship as bricks, and others that are only described."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from toolcrib import ToolSpec


@cache
def entries() -> dict[str, ToolSpec]:
    """Every entry by name, in the order of the file."""
    text = files("toolcrib.toolsets.scraping").joinpath("entries.json").read_text(encoding="utf-8")
    specs = [ToolSpec.parse(entry) for entry in json.loads(text)]
    return {spec.name: spec for spec in specs}


def entry(name: str) -> ToolSpec:
    return entries()[name]
