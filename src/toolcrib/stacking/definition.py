"""A pipeline as data: its steps, its error handling, its limits. Read from JSON or TOML, or built in Python."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError, model_validator

from toolcrib.core.errors import ToolcribError, ToolValidationError
from toolcrib.core.json import read_json
from toolcrib.core.spec import explain


class StepDefinition(BaseModel, frozen=True, extra="forbid"):
    """One brick with its settings. ``accept_status`` lists error statuses whose pages go on all the same."""

    tool: str
    config: dict[str, Any] = Field(default_factory=dict)
    step: int | None = None
    concurrency: int | None = Field(None, ge=1, le=1000)
    accept_status: tuple[int, ...] = ()


class PipelineDefinition(BaseModel, frozen=True, extra="forbid"):
    """Everything a pipeline file may hold. Relative paths are meant from where the run is started.

    A host is asked at most ``host_concurrency`` times at once, and every ``host_delay_seconds`` or as its robots.txt
    wants. ``max_wait_seconds`` is the longest wait that a host may ask for by ``Retry-After`` or ``Crawl-delay``.
    """

    name: str = "pipeline"
    description: str = ""
    steps: tuple[StepDefinition, ...] = Field(min_length=1)
    error_handling: dict[str, Any] = Field(default_factory=dict)
    start: tuple[str, ...] = ()
    concurrency: int = Field(8, ge=1, le=1000)
    max_pages: int | None = Field(None, ge=1)
    max_depth: int | None = Field(None, ge=0)
    max_failures: int | None = Field(None, ge=0)
    allow_hosts: tuple[str, ...] = ()
    obey_robots: bool = True
    host_delay_seconds: float = Field(0.0, ge=0, le=3600)
    host_concurrency: int | None = Field(None, ge=1, le=1000)
    max_wait_seconds: float = Field(60.0, ge=0, le=86_400)
    strict: bool = False
    journal: str = ""

    @model_validator(mode="before")
    @classmethod
    def _one_address_is_a_list_of_one(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("start"), str):
            return {**data, "start": [data["start"]]}
        return data

    @model_validator(mode="after")
    def _steps_are_numbered_once(self) -> PipelineDefinition:
        numbers = [step.step for step in self.steps if step.step is not None]
        if numbers and (len(numbers) < len(self.steps) or len(set(numbers)) < len(numbers)):
            raise ValueError("number every step once, or none")
        return self

    @property
    def ordered_steps(self) -> tuple[StepDefinition, ...]:
        return tuple(sorted(self.steps, key=lambda step: step.step or 0))

    @property
    def digest(self) -> str:
        """Changes with what a run would fetch and do, not with how many at once or where it begins."""
        kept = self.model_dump(mode="json", include={"error_handling", "max_depth", "allow_hosts"})
        kept["steps"] = [[step.tool, step.config, step.accept_status] for step in self.ordered_steps]
        return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()

    @classmethod
    def parse(cls, data: Any, what: str = "pipeline") -> PipelineDefinition:
        """From plain data: an object, or just the list of steps. ToolValidationError names what is wrong."""
        if isinstance(data, Sequence) and not isinstance(data, str | bytes):
            data = {"steps": list(data)}
        if not isinstance(data, Mapping):
            raise ToolValidationError(f"the {what} must be an object or a list of steps, not {data!r:.60}")
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise explain(error, None, what) from None


def read_definition(path: str | Path) -> PipelineDefinition:
    """The pipeline in a ``.json`` or ``.toml`` file; every complaint names the file."""
    path = Path(path)
    is_toml = path.suffix.lower() == ".toml"
    try:
        content = path.read_bytes()
        data = tomllib.loads(content.decode()) if is_toml else read_json(content)
    except OSError as error:
        raise ToolValidationError(f"the pipeline file {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        kind = "TOML" if is_toml else "JSON"
        raise ToolValidationError(f"the pipeline file {str(path)!r} is not {kind}: {error}") from None
    try:
        return PipelineDefinition.parse(data)
    except ToolcribError as error:
        raise ToolValidationError(f"the pipeline file {str(path)!r} is not right: {error}") from None
