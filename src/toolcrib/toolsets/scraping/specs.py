"""The specs of the scraping tools (those that ship as bricks, and others that are only described), and a setting."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import BeforeValidator

from toolcrib import ToolSpec

Names = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
"""A setting of one name or of several."""


@cache
def scraping_specs() -> dict[str, ToolSpec]:
    """Every spec by name, in the order of the file."""
    text = files("toolcrib.toolsets.scraping").joinpath("specs.json").read_text(encoding="utf-8")
    specs = [ToolSpec.parse(data) for data in json.loads(text)]
    return {spec.name: spec for spec in specs}


def brain_specs() -> list[ToolSpec]:
    """The specs for The Brain's file, which has no place for ``deprecated``: their descriptions say so too."""
    beyond = {"deprecated": False, "replaced_by": "", "limitations": (), "metadata": {}}
    return [spec.with_changes(**beyond) if spec.deprecated else spec for spec in scraping_specs().values()]


def scraping_spec(name: str) -> ToolSpec:
    return scraping_specs()[name]
