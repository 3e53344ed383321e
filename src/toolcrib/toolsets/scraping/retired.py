"""Tools of the samples that nobody keeps up any more: a pipeline that names one is told what to use instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ConfigDict

from toolcrib import ToolcribError, ToolSpec, ToolValidationError
from toolcrib.stacking import Brick, BrickConfig, Page, Request, StepContext
from toolcrib.toolsets.scraping.specs import scraping_spec


class RetiredBrick(Brick[Request, Page]):
    """Takes the settings it once had, and never runs."""

    class Config(BrickConfig):
        model_config = ConfigDict(frozen=True, extra="allow")

    takes = Request
    gives = Page

    @classmethod
    def of(cls, name: str) -> type[RetiredBrick]:
        return type("RetiredBrick", (cls,), {"spec": scraping_spec(name)})

    def missing(self) -> list[ToolcribError]:
        return [ToolValidationError(why_retired(self.spec))]

    def process(self, _item: Request, _context: StepContext, /) -> Sequence[Page]:
        raise ToolValidationError(why_retired(self.spec))


def why_retired(spec: ToolSpec) -> str:
    """What to say to who wants to run a tool that is ``deprecated``."""
    retired: dict[str, Any] = spec.metadata["retired"]
    return f"{spec.name!r} is no longer kept up ({retired['reason']}); use {spec.replaced_by!r} instead"
