"""How much work one query may be: a door says how much, whoever works counts, and past it the query ends.

A query that nobody limits has no budget. Stores and patterns count with the functions here, which do nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from toolcrib.core.errors import QueryBudgetError

_LOOKS_A_CHECK = 16
_COMPARISONS_A_CHECK = 1000
_SMALL_PROGRAM = 200
"""Up to this size a regular expression costs one step a byte; a larger one may cost its whole size for each."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may cost. 0 seconds are no limit on time."""

    seconds: float = 2.0
    """Of processor time here, or of a remote server's time."""
    documents: int = 200_000
    """How many documents may be looked at."""
    pattern_steps: int = 1_000_000_000
    """How far regular expressions may read, in bytes; large expressions count for more."""
    characters: int = 64_000_000
    """How long the documents found may be, all together."""


class QueryBudget:
    """What one query may still spend. It is used in one thread; ``stop`` may be called from any.

    ``clock`` says how long has been worked, so that waiting for others costs a query nothing.
    """

    __slots__ = ("_clock", "_compared", "_documents", "_ends_at", "_limits", "_room", "_steps", "_stopped")

    def __init__(self, limits: QueryLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._documents = limits.documents
        self._steps = limits.pattern_steps
        self._room = limits.characters
        self._compared = 0
        self._stopped = False
        self._ends_at = 0.0
        self.start()

    def start(self) -> None:
        """The time counts from now on."""
        self._ends_at = self._clock() + self._limits.seconds if self._limits.seconds else float("inf")

    def stop(self) -> None:
        """Nobody wants the answer any more."""
        self._stopped = True

    @property
    def seconds_left(self) -> float:
        return self._ends_at - self._clock()

    @property
    def is_over(self) -> bool:
        """Whether there is no time left, or nobody who waits."""
        return self._stopped or self.seconds_left <= 0

    def check(self) -> None:
        """Raises QueryBudgetError if the time is over."""
        if self.is_over:
            raise self.time_is_over()

    def time_is_over(self) -> QueryBudgetError:
        return QueryBudgetError(
            f"the query took more than the {self._limits.seconds:g} s of work that one query may; "
            "ask for fewer tools with 'limit', or filter by a name, tag or type too"
        )

    def spend_seconds(self, seconds: float) -> None:
        """Somebody else worked for so long."""
        self._ends_at -= seconds

    def look(self, documents: int) -> None:
        """So many more are looked at. The time is looked at now and then: asking costs more than counting."""
        self._documents -= documents
        if self._documents < 0:
            raise QueryBudgetError(
                f"the query looks at more than the {self._limits.documents} tools that one query may; "
                "filter by a name, tag or type too"
            )
        if documents > 1 or not self._documents % _LOOKS_A_CHECK:
            self.check()

    def compare(self, values: int) -> None:
        """So many more values are compared: one document may hold a hundred thousand, and a filter ask of each."""
        self._compared += values
        if self._compared > _COMPARISONS_A_CHECK:
            self._compared = 0
            self.check()

    def find(self, characters: int) -> None:
        """More documents are found, so long all together."""
        self._room -= characters
        if self._room < 0:
            raise QueryBudgetError(
                f"the tools found are more than the {self._limits.characters} characters that one answer may be; "
                "ask for fewer at a time with 'limit'"
            )

    def match(self, length: int, size: int) -> None:
        """A regular expression of that size is about to read a text of that length."""
        self._steps -= length if size <= _SMALL_PROGRAM else length * size
        if self._steps < 0:
            raise QueryBudgetError(
                "the regular expressions of the query read more text than one query may; "
                "make them simpler, or filter by a name, tag or type too"
            )


LIMITS: ContextVar[QueryLimits | None] = ContextVar("toolcrib_query_limits", default=None)
"""What each query may cost for whoever asks here; a door sets it."""

BUDGET: ContextVar[QueryBudget | None] = ContextVar("toolcrib_query_budget", default=None)
"""The budget of the query under way."""


@contextmanager
def unlimited() -> Iterator[None]:
    """For work that the query under way needs and that all later ones have too, such as an index."""
    token = BUDGET.set(None)
    try:
        yield
    finally:
        BUDGET.reset(token)


def looked_at(documents: int = 1) -> None:
    """So many documents are looked at, whether they match or not. Raises QueryBudgetError if that is too many."""
    budget = BUDGET.get()
    if budget is not None:
        budget.look(documents)


def compared(values: int) -> None:
    """So many values of a document are compared with one of the filter. Raises QueryBudgetError if the time is over."""
    budget = BUDGET.get()
    if budget is not None:
        budget.compare(values)


def found(characters: int) -> None:
    """Documents of that length are among the answers. Raises QueryBudgetError if the answers grow too large."""
    budget = BUDGET.get()
    if budget is not None:
        budget.find(characters)


def reading(length: int, size: int) -> None:
    """A regular expression of that size reads a text of that length. Raises QueryBudgetError if that is too much."""
    budget = BUDGET.get()
    if budget is not None:
        budget.match(length, size)
