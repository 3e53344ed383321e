"""The filter language as SQL.

A filter becomes a condition on a row of ``tool_data`` (called ``d``) and, if an index can find the rows, a source
of candidates. What SQL cannot say exactly becomes a weaker condition, and ``exact`` says so: the caller then asks the
filter itself. Every value goes in as a parameter; an exact condition is 0 or 1, never NULL, so that it can be negated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolcrib.core.query import filters as q
from toolcrib.core.query.patterns import Pattern
from toolcrib.core.query.portable import literal_parts

_MODE = "(SELECT tool_execution_mode FROM tool_execution WHERE tool_id = d.tool_id)"
_POLICY = "(SELECT tool_policy_rule_uri FROM tool_execution WHERE tool_id = d.tool_id)"
_TEXT_COLUMNS: dict[q.Path, str] = {
    ("name",): "d.tool_id",
    ("tool_type",): "d.tool_type",
    ("category",): "d.category",
    ("description",): "d.tool_search_description",
    ("execution_mode",): _MODE,
    ("policy_rule_uri",): _POLICY,
}
"""If a field is a text or absent: a column that is the text or NULL."""
_LABELS: frozenset[q.Path] = frozenset({("tags",), ("capabilities",)})

_MAX_TERMS = 8
"""More texts than this are not searched for one by one."""


@dataclass(frozen=True, slots=True)
class Condition:
    sql: str
    parameters: tuple[Any, ...] = ()
    exact: bool = True


TRUE = Condition("1")
FALSE = Condition("0")
UNKNOWN = Condition("1", exact=False)


def condition(where: q.Filter) -> Condition:
    """What a row must fulfil to match, or at least to be a candidate."""
    match where:
        case q.At(path, test):
            return _at(path, test)
        case q.And(parts):
            return _joined([condition(part) for part in parts], "AND", TRUE)
        case q.Or(parts):
            return _joined([condition(part) for part in parts], "OR", FALSE)
        case q.Not(inner):
            inside = condition(inner)
            return Condition(f"(NOT {inside.sql})", inside.parameters) if inside.exact else UNKNOWN
    raise TypeError(f"{where!r} is not a filter")


def _joined(parts: list[Condition], word: str, empty: Condition) -> Condition:
    exact = all(part.exact for part in parts)
    said = [part for part in parts if part.sql != empty.sql]
    if not said:
        return Condition(empty.sql, exact=exact)
    sql = f"({f' {word} '.join(part.sql for part in said)})" if len(said) > 1 else said[0].sql
    return Condition(sql, tuple(value for part in said for value in part.parameters), exact)


def _at(path: q.Path, test: q.Test) -> Condition:
    if path in _TEXT_COLUMNS:
        return _text(_TEXT_COLUMNS[path], test)
    if path in _LABELS:
        texts = _wanted_texts(test)
        if texts is not None:
            marks = ", ".join("?" * len(texts))
            labels = f"SELECT 1 FROM tool_label WHERE field = ? AND value IN ({marks})"  # noqa: S608 -- question marks
            return Condition(f"EXISTS ({labels} AND tool_id = d.tool_id)", (path[0], *texts))
    return _anywhere(path, test)


def _wanted_texts(test: q.Test) -> tuple[str, ...] | None:
    """The texts one of which the value must be, if the test says that and no more."""
    match test:
        case q.Compare("$eq", str(text)):
            return (text,)
        case q.OneOf(values) if values and all(isinstance(value, str) for value in values):
            return tuple(dict.fromkeys(values))
    return None


# A field that has a column


def _text(column: str, test: q.Test) -> Condition:
    match test:
        case q.Compare(operator, value):
            return _text_compared(column, operator, value)
        case q.OneOf(values):
            texts = tuple(value for value in values if isinstance(value, str))
            parts = [_absent(column)] if None in values else []
            if texts:
                sql = f"({column} IS NOT NULL AND {column} IN ({', '.join('?' * len(texts))}))"
                parts.append(Condition(sql, texts))
            return _joined(parts, "OR", FALSE)
        case q.Present():
            return Condition(f"({column} IS NOT NULL)")
        case q.HasType(names):
            return Condition(f"({column} IS NOT NULL)") if "string" in names else FALSE
        case q.Like(pattern):
            return _joined([UNKNOWN, *_holding(column, _terms(pattern))], "AND", TRUE)
    return FALSE


def _text_compared(column: str, operator: q.Comparison, value: Any) -> Condition:
    if value is None:
        return FALSE if operator in {"$gt", "$lt"} else _absent(column)
    if not isinstance(value, str):
        return FALSE
    if operator == "$eq":
        return Condition(f"({column} IS ?)", (value,))
    sign = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}[operator]
    return Condition(f"({column} IS NOT NULL AND {column} {sign} ?)", (value,))


def _absent(column: str) -> Condition:
    return Condition(f"({column} IS NULL)")


# A field that is somewhere in the document


def _anywhere(path: q.Path, test: q.Test) -> Condition:
    """A weaker condition: a text must stand somewhere in the document, another scalar at its path or in an array."""
    texts = _wanted_texts(test)
    if texts is not None and len(texts) <= _MAX_TERMS:
        quoted = [json.dumps(text, ensure_ascii=False) for text in texts]
        found = _joined([Condition("instr(d.document, ?) > 0", (text,)) for text in quoted], "OR", FALSE)
    elif isinstance(test, q.Like):
        parts = [part for part in _terms(test.pattern) if json.dumps(part, ensure_ascii=False) == f'"{part}"']
        found = _joined(_holding("d.document", parts), "AND", TRUE)
    else:
        found = _at_json_path(path, test)
    return Condition(found.sql, found.parameters, exact=False)


def _holding(column: str, parts: list[str]) -> list[Condition]:
    return [Condition(f"instr(lower({column}), ?) > 0", (part,)) for part in parts]


def _terms(pattern: Pattern) -> list[str]:
    return [part for part in literal_parts(pattern.tree) if "\0" not in part][:_MAX_TERMS]


def _at_json_path(path: q.Path, test: q.Test) -> Condition:
    column, steps = ("d.tool_metadata", path[1:]) if path[0] == "metadata" else ("d.document", path)
    if any(json.dumps(step, ensure_ascii=False) != f'"{step}"' for step in path):
        return UNKNOWN
    places = ["$" + "".join(f'."{step}"' for step in steps[:length]) for length in range(len(steps) + 1)]
    wanted = _json_condition(column, places[-1], test)
    if wanted is None:
        return UNKNOWN
    arrays = [Condition(f"json_type({column}, ?) IS 'array'", (place,)) for place in places]
    return _joined([wanted, *arrays], "OR", FALSE)


def _json_condition(column: str, place: str, test: q.Test) -> Condition | None:
    """What ``test`` asks of a value that is no array, or None if SQL has no words for it."""
    kind = f"json_type({column}, ?)"
    match test:
        case q.Compare("$eq" | "$gte" | "$lte", None):
            return Condition(f"coalesce({kind}, 'null') = 'null'", (place,))
        case q.Compare(operator, bool(value)):
            if operator == "$eq":
                return Condition(f"{kind} IS ?", (place, "true" if value else "false"))
            return Condition(f"{kind} IN ('true', 'false')", (place,))
        case q.Compare(operator, int() | float() as number):
            low, high = _around(operator, float(number))
            sql = f"({kind} IN ('integer', 'real') AND json_extract({column}, ?) BETWEEN ? AND ?)"
            return Condition(sql, (place, place, low, high))
        case q.Present():
            return Condition(f"{kind} IS NOT NULL", (place,))
    return None


def _around(operator: q.Comparison, number: float) -> tuple[float, float]:
    """Bounds that hold every number the comparison accepts; SQLite reads the last digit of a number as it likes."""
    leeway = abs(number) * 1e-9 + 1e-300
    low = float("-inf") if operator in {"$lt", "$lte"} else number - leeway
    high = float("inf") if operator in {"$gt", "$gte"} else number + leeway
    return low, high


# Where an index finds the rows


@dataclass(frozen=True, slots=True)
class Posting:
    """One entry of one index: the tools that have ``value`` in a column, or as a label of a kind."""

    table: str
    index: str
    column: str
    value: str
    field: str = ""

    @property
    def condition(self) -> Condition:
        if self.field:
            return Condition("field = ? AND value = ?", (self.field, self.value))
        return Condition(f"{self.column} = ?", (self.value,))


_COLUMN_INDEXES: dict[q.Path, tuple[str, str, str]] = {
    ("name",): ("tool_data", "sqlite_autoindex_tool_data_1", "tool_id"),
    ("tool_type",): ("tool_data", "tool_data_type", "tool_type"),
    ("category",): ("tool_data", "tool_data_category", "category"),
    ("execution_mode",): ("tool_execution", "tool_execution_by_mode", "tool_execution_mode"),
    ("policy_rule_uri",): ("tool_execution", "tool_execution_by_policy", "tool_policy_rule_uri"),
}

Source = tuple[Posting, ...]
"""The union of some postings: every match is in one of them."""


def conjuncts(where: q.Filter) -> Iterator[q.Filter]:
    """The filters that must all match."""
    if isinstance(where, q.And):
        for part in where.filters:
            yield from conjuncts(part)
    else:
        yield where


def sources(where: q.Filter) -> list[tuple[q.Filter, Source]]:
    """For each part that must match and that an index answers: the part, and where its candidates are."""
    found = ((part, _source(part)) for part in conjuncts(where))
    return [(part, source) for part, source in found if source is not None]


def _source(where: q.Filter) -> Source | None:
    match where:
        case q.At(path, test):
            texts = _wanted_texts(test)
            if texts is None or len(texts) > 100:
                return None
            if path in _LABELS:
                return tuple(Posting("tool_label", "", "value", text, path[0]) for text in texts)
            if path in _COLUMN_INDEXES:
                return tuple(Posting(*_COLUMN_INDEXES[path], text) for text in texts)
        case q.Or(parts):
            return _union(parts)
        case q.And():
            return min((source for _, source in sources(where)), key=len, default=None)
    return None


def _union(parts: tuple[q.Filter, ...]) -> Source | None:
    union: list[Posting] = []
    for part in parts:
        source = _source(part)
        if source is None:
            return None
        union.extend(source)
    return tuple(dict.fromkeys(union)) if 0 < len(union) <= 100 else None
