"""A brick: one tool behind the shape that all of them share, so that they stack.

A brick says what it is (``spec``), what it takes and gives (``takes``, ``gives``), which settings it knows
(``Config``), and turns one item into any number of items (``process``). ``process``, ``open`` and ``close`` are
plain or async functions, as suits the tool: plain ones run in threads that belong to the step alone.
"""

from __future__ import annotations

import importlib.util
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import MissingConfigError, MissingDependencyError, ToolcribError
from toolcrib.core.spec import ToolSpec, explain
from toolcrib.stacking.items import Item, Request

In = TypeVar("In", bound=Item)
Out = TypeVar("Out", bound=Item)

Secrets = Callable[[str], "str | None"]


class BrickConfig(BaseModel):
    """The settings of a brick; an unknown one is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StepContext:
    """What a brick may say and hear while it works on one item."""

    __slots__ = ("_cancelled", "_tell", "followed")

    def __init__(
        self, cancelled: Callable[[], bool] = lambda: False, tell: Callable[[str], None] = lambda _text: None
    ) -> None:
        self._cancelled = cancelled
        self._tell = tell
        self.followed: list[Request] = []

    def tell(self, text: str) -> None:
        """Say what takes so long, for those who watch the run's progress. Works from a thread too."""
        self._tell(text)

    def follow(self, request: Request) -> None:
        """Send another request through the pipeline from its beginning; one that went before is left out."""
        self.followed.append(request)

    @property
    def cancelled(self) -> bool:
        """Whether the run is ending, so that long work in a thread should stop."""
        return self._cancelled()


class Brick(ABC, Generic[In, Out]):
    """One step of a pipeline. Made from its settings; touches nothing before ``open``."""

    spec: ClassVar[ToolSpec]
    takes: ClassVar[type[Item]]
    gives: ClassVar[type[Item]]
    modules: ClassVar[tuple[str, ...]] = ()
    """The modules that must be importable; the spec's ``pip_install_command`` brings them."""
    quick: ClassVar[bool] = False
    """Whether a plain ``process`` neither waits nor computes for long, so that a thread would cost more than it."""
    files: ClassVar[tuple[str, ...]] = ()
    """The settings that name a file of this machine. Who calls the brick as a tool names one in a folder for that."""
    private: ClassVar[tuple[str, ...]] = ()
    """The settings that are not for whoever calls the brick as a tool: a program, a limit, where a key is sent."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Settings to begin with, for those that must be given: a plan that is written down has them."""
    Config: ClassVar[type[BrickConfig]] = BrickConfig

    def __init__(self, config: Mapping[str, Any] | None = None, *, secrets: Secrets | None = None) -> None:
        self.secrets = as_secrets(secrets)
        self.addresses = AddressRules.in_force()
        try:
            self.config: Any = self.Config.model_validate(dict(config or {}))
        except ValidationError as error:
            raise explain(error, {"name": self.spec.name}, "brick") from None

    @classmethod
    def lacks(cls, secrets: Secrets | None = None) -> tuple[str, ...]:
        """What must be had before it can run here with the settings to begin with, a sentence each."""
        try:
            return tuple(str(error) for error in cls(cls.example, secrets=secrets).missing())
        except ToolcribError as error:
            return (str(error),)

    def missing(self) -> list[ToolcribError]:
        """What this brick needs before it can run: packages, then keys."""
        errors: list[ToolcribError] = []
        absent = [module for module in self.modules if importlib.util.find_spec(module) is None]
        if absent:
            install = self.spec.pip_install_command or f"pip install {self.spec.package_name}"
            needed = f"{', '.join(absent)}, which brick {self.spec.name!r} needs,"
            errors.append(MissingDependencyError(needed, install))
        return errors + [self._missing_key(key) for key in self.spec.required_config if not self.secrets(key)]

    def secret(self, key: str) -> str:
        value = self.secrets(key)
        if not value:
            raise self._missing_key(key)
        return value

    def _missing_key(self, key: str) -> MissingConfigError:
        needed = f"brick {self.spec.name!r} needs the key {key!r}"
        return MissingConfigError(f"{needed}; set it in the environment or the secrets")

    def open(self) -> Awaitable[None] | None:
        """Take the resources: connections, files, a browser."""
        return None

    def close(self) -> Awaitable[None] | None:
        """Give them back. Called once after every ``open`` that succeeded, however the run ended."""
        return None

    @abstractmethod
    def process(self, item: In, context: StepContext, /) -> Iterable[Out] | Awaitable[Iterable[Out]]:
        """Turn one item into any number of items.

        Raises ToolTimeoutError if time ran out and UnavailableError if nobody answered: a pipeline can retry those, or
        try another brick.
        """

    def feedback(self, item: In, kind: str) -> None:
        """Told to a brick that rewrites requests: what came of ``item``; ``kind`` is '' for success."""

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.process)

    @property
    def execution_mode(self) -> str:
        """What a catalogue's entry must say of it, if it says ``sync`` or ``async``."""
        return "async" if self.is_async else "sync"


class BatchBrick(Brick[In, Out]):
    """A brick that works better on many items at once, such as one that writes to disk.

    It runs one batch at a time, in one thread. Batches form by themselves: what arrives during one makes the next.
    """

    def process(self, item: In, context: StepContext, /) -> Sequence[Out]:
        return self.process_many([item], context)

    @abstractmethod
    def process_many(self, items: Sequence[In], context: StepContext, /) -> Sequence[Out]:
        """One result for each item, in order; all of them are done when this returns."""

    @property
    def is_async(self) -> bool:
        return False


AnyBrick = Brick[Any, Any]


def as_secrets(source: Secrets | Mapping[str, str] | None) -> Secrets:
    """Keys by name from a mapping, a function, or nowhere."""
    if source is None:
        return lambda _key: None
    return source.get if isinstance(source, Mapping) else source
