"""A JSON Schema filled from what a page says, in the order of trust: selectors, JSON-LD, microdata, tables, labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from operator import contains
from typing import Any

Facts = Mapping[str, Any]
Source = tuple[str, Iterable[tuple[str, Any]]]

_NUMBER = re.compile(r"[-+]?\d[\d.,\s\u00a0']*")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])|\d+")
_ALIASES = {
    "name": ("title", "headline"), "title": ("name", "headline"), "url": ("link", "href"), "link": ("url", "href"),
    "image": ("img", "picture", "photo"), "description": ("summary", "abstract"), "summary": ("description",),
    "author": ("by", "creator"), "date": ("published", "date published", "time"), "currency": ("price currency",),
    "rating": ("rating value",), "price": ("amount", "cost"), "phone": ("telephone",), "email": ("e mail",),
}  # fmt: skip


def extract(schema: Mapping[str, Any], facts: Facts) -> tuple[Any, dict[str, str]]:
    """The data in the schema's shape, and for each top-level value where it came from."""
    if schema.get("type") == "array":
        rows, source = _records(schema.get("items", {}), facts)
        return rows, {"": source} if rows else {}
    return _object(schema, facts)


def gaps(schema: Mapping[str, Any], data: Any) -> list[str]:
    """The fields that are wanted and were not found: the required ones, or all if none is required."""
    if schema.get("type") == "array":
        return [] if data else ["[]"]
    wanted = schema.get("required") or list(schema.get("properties", {}))
    return [name for name in wanted if not isinstance(data, dict) or data.get(name) is None]


def _object(schema: Mapping[str, Any], facts: Facts) -> tuple[dict[str, Any], dict[str, str]]:
    data: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, field in schema.get("properties", {}).items():
        items = field.get("items", {})
        if field.get("type") == "array" and (items.get("type") == "object" or "properties" in items):
            rows, source = _records(items, facts)
            value: Any = rows or None
        else:
            value, source = _value(name, field, _sources(facts))
        if value is not None:
            data[name], sources[name] = value, source
    return data, sources


def _sources(facts: Facts) -> Iterator[Source]:
    yield "selector", _selected(facts)
    for item in facts["json_ld"]:
        yield "json-ld", _flat(item)
    for item in facts["microdata"]:
        yield "microdata", _flat(item)
    for table in facts["tables"]:
        if table["headers"] and len(table["rows"]) == 1:
            yield "table", list(zip(table["headers"], table["rows"][0], strict=False))
    yield "label", facts["pairs"]
    yield "meta", list(facts["meta"].items())
    yield "marked", facts["marked"]
    yield "page", [*facts["natural"], ("title", facts["title"]), ("url", facts["url"])]


def _selected(block: Facts) -> list[tuple[str, Any]]:
    return [(name, found["values"]) for name, found in block["selected"].items() if found.get("values")]


def _flat(item: Any) -> list[tuple[str, Any]]:
    """``offers.price`` is found as itself and as ``price``; near things before far ones."""
    if not isinstance(item, dict):
        return []
    pairs: list[tuple[str, Any]] = []
    inner: list[tuple[str, Any]] = []
    for key, value in item.items():
        if key.startswith("@"):
            continue
        pairs.append((key, value))
        first = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        for name, deep in _flat(first):
            inner += [(f"{key} {name}", deep), (name, deep)]
    return pairs + inner


def _value(name: str, field: Mapping[str, Any], sources: Iterable[Source]) -> tuple[Any, str]:
    """The first value that fits the field by name and by type; an exact name in any source before a likely one."""
    listed = [(source, list(pairs)) for source, pairs in sources]
    names = [_key(name), *([_key(str(field["title"]))] if field.get("title") else [])]
    likely = [alias for key in names for alias in _ALIASES.get(key, ())]
    for fits in (partial(contains, names), partial(contains, likely), partial(_holds, names[0])):
        for source, pairs in listed:
            for label, raw in pairs:
                if fits(_key(label)) and (value := _coerced(raw, field)) is not None:
                    return value, source
    return None, ""


def _key(name: str) -> str:
    return " ".join(word.lower() for word in _WORD.findall(name.replace("_", " ").replace("-", " ")))


def _holds(wanted: str, label: str) -> bool:
    words = label.split()
    return bool(wanted) and len(words) <= 4 and all(word in words for word in wanted.split())


def _coerced(raw: Any, field: Mapping[str, Any]) -> Any:
    """The raw value as the field's type, or None if it cannot be one."""
    kind = field.get("type", "string" if "enum" not in field else "")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    if kind == "array":
        return _list(raw, field.get("items", {}))
    if isinstance(raw, list):
        raw = raw[0] if raw else None
    if kind == "object" or "properties" in field:
        return _record(field.get("properties", {}), [("", _flat(raw))]) or None
    if isinstance(raw, dict):
        raw = raw.get("name") or raw.get("@value") or raw.get("url") or raw.get("@id")
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    value = _scalar(raw, kind)
    return value if "enum" not in field or value in field["enum"] else _enum(value, field["enum"])


def _scalar(raw: Any, kind: str) -> Any:
    if kind in ("number", "integer"):
        number = raw if isinstance(raw, int | float) and not isinstance(raw, bool) else _number(str(raw))
        return None if number is None else round(number) if kind == "integer" else number
    if kind == "boolean":
        text = str(raw).strip().lower()
        if text in ("true", "yes", "on", "1", "in stock", "available") or text.endswith("/instock"):
            return True
        if text in ("false", "no", "off", "0", "out of stock", "unavailable") or text.endswith("/outofstock"):
            return False
        return None
    return str(raw).strip()


def _enum(value: Any, choices: list[Any]) -> Any:
    return next((choice for choice in choices if str(choice).casefold() == str(value).casefold()), None)


def _list(raw: Any, items: Mapping[str, Any]) -> list[Any] | None:
    if isinstance(raw, str):
        raw = [part for part in re.split(r"\s*[,;\n]\s*", raw) if part]
    values = [_coerced(one, items) for one in (raw if isinstance(raw, list) else [raw])]
    return [value for value in values if value is not None] or None


def _number(text: str) -> float | int | None:
    """``1,299.00``, ``1.299,00`` and ``1 299`` are numbers; the last of two kinds of separators is the decimal one."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    digits = re.sub(r"[\s\u00a0']", "", found.group()).rstrip(".,")
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma > dot:
        decimal = dot >= 0 or (digits.count(",") == 1 and len(digits) - comma - 1 != 3)
        digits = digits.replace(".", "").replace(",", "." if decimal else "")
    else:
        grouped = comma < 0 and digits.count(".") > 1
        digits = digits.replace(",", "").replace(".", "" if grouped else ".")
    return float(digits) if "." in digits else int(digits)


def _records(schema: Mapping[str, Any], facts: Facts) -> tuple[list[Any], str]:
    """The list of records that fills most of the schema: given blocks, JSON-LD, microdata, tables, repeated blocks."""
    fields = schema.get("properties", {})
    best: tuple[float, list[Any], str] = (0.0, [], "")
    for source, candidates in _record_sources(facts):
        rows = [row for pairs in candidates if (row := _record(fields, pairs))]
        filled = sum(len(row) for row in rows) / (len(fields) or 1)
        if filled > best[0] * 1.1 and all(any(name in row for row in rows) for name in schema.get("required", ())):
            best = (filled, rows, source)
        if source == "selector" and rows:
            break
    return best[1], best[2]


def _record_sources(facts: Facts) -> Iterator[tuple[str, list[list[Source]]]]:
    if records := facts.get("records"):
        yield "selector", [[("selector", _selected(record)), ("block", record["pairs"])] for record in records]
    yield "json-ld", [[("json-ld", _flat(item))] for item in _json_ld_items(facts["json_ld"])]
    yield "microdata", [[("microdata", _flat(item))] for item in facts["microdata"]]
    for table in facts["tables"]:
        if table["headers"]:
            yield "table", [[("table", list(zip(table["headers"], row, strict=False)))] for row in table["rows"]]
    for group in facts["groups"]:
        yield "repeated blocks", [[("block", record["pairs"])] for record in group]


def _json_ld_items(items: list[Any]) -> Iterator[Any]:
    for item in items:
        listed = item.get("itemListElement") if isinstance(item, dict) else None
        if isinstance(listed, list):
            yield from (entry.get("item", entry) if isinstance(entry, dict) else entry for entry in listed)
        else:
            yield item


def _record(fields: Mapping[str, Any], pairs: list[Source]) -> dict[str, Any]:
    found = {name: _value(name, field, pairs)[0] for name, field in fields.items()}
    return {name: value for name, value in found.items() if value is not None}
