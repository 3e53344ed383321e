"""From a filter to the rows: which index leads, and what each row must fulfil."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from toolcrib.adapters.stores.sqlite_filter import Condition, Posting, Source, condition, conjuncts, sources
from toolcrib.core.query import And, At, Filter

_STEPS = (64, 1000, 10_000)
"""How far postings are counted to find the shortest; each step only if the one before told nothing."""
_HINTS = 10_000
_HINT_SECONDS = 60.0


class Lengths:
    """How long postings are, about: a hint for which to read first, remembered for a minute.

    Only the hash of a source is kept: who asks writes the values in it, as long as they like. Should two ever have the
    same one, a hint is wrong.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, int]] = {}

    def shortest(
        self, connection: sqlite3.Connection, candidates: list[tuple[Filter, Source]]
    ) -> tuple[Filter, Source] | None:
        if len(candidates) <= 1:
            return candidates[0] if candidates else None
        lengths = [self._remembered(source) for _, source in candidates]
        known = [length for length in lengths if length is not None]
        if len(known) < len(lengths) and min(known, default=_STEPS[0]) >= _STEPS[0]:
            lengths = self._counted(connection, [source for _, source in candidates])
        by_length = zip((_STEPS[-1] if length is None else length for length in lengths), candidates, strict=True)
        return min(by_length, key=itemgetter(0))[1]

    def _remembered(self, source: Source) -> int | None:
        until, length = self._known.get(hash(source), (0.0, 0))
        return length if until > time.monotonic() else None

    def _counted(self, connection: sqlite3.Connection, sources: list[Source]) -> list[int | None]:
        step, lengths = 0, [0] * len(sources)
        for step in _STEPS:
            lengths = [sum(_length(connection, posting, step) for posting in source) for source in sources]
            if min(lengths) < step:
                break
        if len(self._known) > _HINTS:
            self._known.clear()
        until = time.monotonic() + _HINT_SECONDS
        for source, length in zip(sources, lengths, strict=True):
            if length < step or step == _STEPS[-1]:  # otherwise it was only counted so far
                self._known[hash(source)] = until, length
        return [*lengths]


@dataclass(frozen=True, slots=True)
class Selection:
    """``SELECT ... {sql} ORDER BY {key}`` reads the candidates in the order of names."""

    sql: str
    parameters: tuple[Any, ...]
    key: str
    exact: bool
    """Whether every candidate matches."""


def select(
    connection: sqlite3.Connection, where: Filter, *, after: str | None = None, lengths: Lengths | None = None
) -> Selection:
    """The candidates for ``where``, found by the index with the fewest of them if one can be used."""
    leading = (lengths or Lengths()).shortest(connection, sources(where))
    if leading is None:
        tables, first, key = "FROM tool_data AS d", Condition("1"), "d.tool_id"
        rest = condition(where)
    else:
        part, source = leading
        tables, first, key = _led_by(source)
        others = And(tuple(other for other in conjuncts(where) if other is not part))
        # A plain test is all that its posting says; anything else is asked of each row as well.
        rest = condition(others if isinstance(part, At) else where)
    sql = f"{tables} WHERE {first.sql} AND {rest.sql}"
    parameters = (*first.parameters, *rest.parameters)
    if after is not None:
        sql, parameters = f"{sql} AND {key} > ?", (*parameters, after)
    return Selection(sql, parameters, key, rest.exact)


def _led_by(source: Source) -> tuple[str, Condition, str]:
    """The tables in the order they are read, the condition on the first, and its column of names."""
    if len(source) > 1:
        parts = [f"SELECT tool_id FROM {posting.table} WHERE {posting.condition.sql}" for posting in source]  # noqa: S608
        values = tuple(value for posting in source for value in posting.condition.parameters)
        return "FROM tool_data AS d", Condition(f"d.tool_id IN ({' UNION ALL '.join(parts)})", values), "d.tool_id"
    posting = next(iter(source))
    if posting.table == "tool_data":
        tables = f"FROM tool_data AS d INDEXED BY {posting.index}"
        return tables, Condition(f"d.{posting.column} = ?", (posting.value,)), "d.tool_id"
    by_index = f" INDEXED BY {posting.index}" if posting.index else ""
    # CROSS JOIN keeps SQLite from reordering: the posting is read in the order of names, and a LIMIT ends it early.
    tables = f"FROM {posting.table} AS p{by_index} CROSS JOIN tool_data AS d ON d.tool_id = p.tool_id"
    return tables, posting.condition, "p.tool_id"


def _length(connection: sqlite3.Connection, posting: Posting, enough: int) -> int:
    where = posting.condition
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {posting.table} WHERE {where.sql} LIMIT {enough})"  # noqa: S608
    return int(connection.execute(sql, where.parameters).fetchone()[0])
