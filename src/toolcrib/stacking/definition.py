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
    """One brick with its settings."""

    tool: str = Field(description="the brick")
    config: dict[str, Any] = Field(default_factory=dict, description="its settings")
    step: int | None = Field(None, description="its place in the row, if the order of writing is not meant")
    concurrency: int | None = Field(None, ge=1, le=1000, description="so many items at once, if not as in the pipeline")
    accept_status: tuple[int, ...] = Field((), description="error statuses whose pages go on all the same")


class PipelineDefinition(BaseModel, frozen=True, extra="forbid"):
    """Everything a pipeline file may hold. Relative paths are meant from where the run is started."""

    name: str = Field("pipeline", description="its name in reports, and as a tool")
    description: str = Field("", description="what it is for")
    steps: tuple[StepDefinition, ...] = Field(min_length=1, description="the bricks in their order")
    error_handling: dict[str, Any] = Field(default_factory=dict, description="what follows which kind of failure")
    start: tuple[str, ...] = Field((), description="the addresses to begin with; one may be written without the list")
    concurrency: int = Field(8, ge=1, le=1000, description="so many requests at once")
    max_pages: int | None = Field(None, ge=1, description="so many requests in all")
    max_depth: int | None = Field(None, ge=0, description="so many links away from a start address")
    max_failures: int | None = Field(None, ge=0, description="the run ends if more requests fail")
    allow_hosts: tuple[str, ...] = Field((), description="hosts, with their subdomains, addresses or networks")
    obey_robots: bool = Field(True, description="leave alone what a host's robots.txt refuses")
    host_delay_seconds: float = Field(0.0, ge=0, le=3600, description="the pause between two requests to a host")
    host_concurrency: int | None = Field(None, ge=1, le=1000, description="so many requests to a host at once")
    max_wait_seconds: float = Field(
        60.0, ge=0, le=86_400, description="the longest wait that a host may ask for; 0: none is heard"
    )
    strict: bool = Field(False, description="a tool that lists what it accepts accepts nothing else")
    journal: str = Field("", description="a file of notes, so that a run that was killed goes on")

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
