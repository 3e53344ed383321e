"""What happened in a run, as it can be kept: what the model said, the calls, what came of them, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.json import as_json, read_json, write_json
from toolcrib.core.result import ToolResult
from toolcrib.formats.saying import Tokens

Ended = Literal["", "answer", "terminal", "cut_off", "steps", "seconds", "tokens", "model_failed", "nothing_said"]
"""Why a run ended: with an answer, by a tool that ends the task, at a limit, or because of the model."""
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model costs, for a million tokens each; those that the provider's cache has cost the same if not said."""

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    currency: str = "USD"

    def of(self, tokens: Tokens) -> float:
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        new = tokens.input - tokens.cached - tokens.written
        parts = (new, self.input), (tokens.cached, cached), (tokens.written, written), (tokens.output, self.output)
        return sum(count * price for count, price in parts) / _MILLION


@dataclass(slots=True)
class CallRecord:
    """A call as the model made it. ``result`` is None while it runs, and stays so if the run's time stopped it."""

    name: str
    arguments: Any
    call_id: str = ""
    result: ToolResult | None = None
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        told = {"name": self.name, "arguments": self.arguments, "call_id": self.call_id, "seconds": self.seconds}
        return told | {"result": None if self.result is None else self.result.to_json()}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        result = given.get("result")
        return cls(**{**given, "result": None if result is None else ToolResult(**result)})


@dataclass(slots=True)
class Step:
    """One message of the model, as the conversation went on with it, and the calls in it."""

    text: str
    message: list[Any]
    tokens: Tokens = field(default_factory=Tokens)
    calls: list[CallRecord] = field(default_factory=list)
    seconds: float = 0.0
    """How long the model took."""

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text, "message": self.message, "tokens": asdict(self.tokens), "seconds": self.seconds,
            "calls": [call.to_json() for call in self.calls],
        }  # fmt: skip

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        calls = [CallRecord.from_json(call) for call in given["calls"]]
        return cls(**{**given, "tokens": Tokens(**given["tokens"]), "calls": calls})


@dataclass(slots=True)
class Transcript:
    """One run; ``before`` is that of the run that it goes on with. It holds all that was said: keep it as secret."""

    task: Any
    format: str = "openai"
    model: str = ""
    system: str = ""
    steps: list[Step] = field(default_factory=list)
    ended: Ended = ""
    reason: str = ""
    answer: Any = None
    prices: Prices | None = None
    before: Transcript | None = None

    @property
    def usage(self) -> Tokens:
        """The tokens of this run, without those before."""
        return sum((step.tokens for step in self.steps), Tokens())

    @property
    def cost(self) -> float | None:
        """By the prices that were given; None if there are none."""
        return None if self.prices is None else self.prices.of(self.usage)

    @property
    def runs(self) -> list[Transcript]:
        """All that belong together, the first one first."""
        return [*(self.before.runs if self.before else ()), self]

    @property
    def calls(self) -> list[CallRecord]:
        return [call for step in self.steps for call in step.calls]

    def to_json(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("task", "format", "model", "system", "ended", "reason")}
        usage, prices = self.usage, self.prices
        return own | {
            "answer": as_json(self.answer),
            "steps": [step.to_json() for step in self.steps],
            "usage": asdict(usage) | {"total": usage.total},
            "cost": self.cost,
            "prices": None if prices is None else asdict(prices),
            "before": None if self.before is None else self.before.to_json(),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """A transcript as ``to_json`` wrote it, or that of a run; ToolValidationError if it is none."""
        try:
            own = {name: value for name, value in given.items() if name not in ("success", "usage", "cost")}
            steps = [Step.from_json(step) for step in given["steps"]]
            prices, before = given.get("prices"), given.get("before")
            own |= {"steps": steps, "prices": None if prices is None else Prices(**prices)}
            return cls(**{**own, "before": None if before is None else cls.from_json(before)})
        except (KeyError, TypeError, AttributeError) as error:
            raise ToolValidationError(f"this is not the transcript of a run: {error}") from None

    def save(self, path: str | Path) -> Path:
        target = Path(path)
        target.write_bytes(write_json(self.to_json()) + b"\n")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Self:
        try:
            return cls.from_json(read_json(Path(path).read_bytes()))
        except ValueError as error:
            raise ToolValidationError(f"{str(path)!r} is not the transcript of a run: {error}") from None


@dataclass(slots=True)
class Run:
    """What a run came to. ``agent.run(task, after=run)`` goes on with it.

    ``answer`` is the model's last text, or the data of the tool that ended the run, whose ``result`` is here too. At a
    limit it is the last text that the model said on the way, None if there was none. ``error`` is what the model
    raised. ``messages`` is the conversation as the model was told it.
    """

    answer: Any
    ended: Ended
    reason: str
    transcript: Transcript = field(repr=False)
    messages: list[Any] = field(default_factory=list, repr=False)
    result: ToolResult | None = field(default=None, repr=False)
    error: BaseException | None = None

    @property
    def success(self) -> bool:
        """Whether the model came to an end of its own, and did not say by a tool that it failed."""
        return self.ended == "answer" or (self.result is not None and self.result.success)

    @property
    def steps(self) -> list[Step]:
        return self.transcript.steps

    @property
    def usage(self) -> Tokens:
        return self.transcript.usage

    @property
    def cost(self) -> float | None:
        return self.transcript.cost

    def to_json(self) -> dict[str, Any]:
        """As a door sends it: the transcript has it all."""
        return {"success": self.success, **self.transcript.to_json()}
