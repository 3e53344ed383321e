"""Tools as text for a system prompt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.core.json import as_json, lookup
from toolcrib.core.spec import ToolExample, ToolSpec
from toolcrib.formats.provider import Loss
from toolcrib.formats.schemas import MAX_DEPTH, TypeWords, Writer, parameters_of

NO_TOOLS = "No tools available."
_UNCATEGORISED = "other"


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:  # noqa: ARG001 - nothing is lost
    return {"name": name, "instructions": tool_instructions(spec)}


def generate_prompt(
    specs: Iterable[ToolSpec],
    *,
    include_examples: bool = False,
    include_notes: bool = False,
    include_limitations: bool = False,
    group_by_category: bool = False,
    categories: Iterable[str] | None = None,
    max_examples_per_tool: int | None = None,
    minimal: bool = False,
) -> str:
    """The tools as text, in their order, grouped in the order in which their categories appear.

    ``categories`` keeps only the tools of those. ``minimal`` is for models that are handed definitions as well: it
    leaves out what these say already, so a tool with nothing to add is left out too.
    """
    wanted = None if categories is None else frozenset(categories)
    chosen = [spec for spec in specs if wanted is None or spec.category in wanted]
    if not chosen:
        return NO_TOOLS
    examples = max_examples_per_tool if include_examples else 0
    groups: dict[str, list[str]] = {}
    for spec in chosen:
        details = _details(spec, examples, include_notes, include_limitations)
        if minimal and not details and not spec.deprecated:
            continue
        head = [f"- {spec.name}:{_deprecation(spec)}"] if minimal else _head(spec)
        category = (spec.category or _UNCATEGORISED) if group_by_category else ""
        groups.setdefault(category, []).append("\n".join([*head, *details]))
    blocks = ["Tool Notes:" if minimal else "Available Tools:"]
    for category, tools in groups.items():
        heading = f"{_title(category)} TOOLS:\n" if category else ""
        blocks.append(heading + "\n\n".join(tools))
    return "\n\n".join(blocks) if groups else ""


def _title(category: str) -> str:
    return category.replace("-", " ").replace("_", " ").upper()


def _head(spec: ToolSpec) -> list[str]:
    lines = [f"- {spec.name}: {_indented(spec.description, 2)}{_deprecation(spec)}"]
    root, given = parameters_of(spec)
    types = Writer(TYPES, root)
    if parameters := ", ".join(f"{name} ({types.write(sub)})" for name, sub, _ in given):
        lines.append(f"  Parameters: {parameters}")
    return lines


def _deprecation(spec: ToolSpec) -> str:
    if not spec.deprecated:
        return ""
    return f" (deprecated, use {spec.replaced_by})" if spec.replaced_by else " (deprecated)"


def _details(spec: ToolSpec, examples: int | None, notes: bool, limitations: bool) -> list[str]:
    lines = [line for example in spec.examples[:examples] for line in _example(example)]
    if notes and spec.usage_notes:
        lines.append(f"  Notes: {_indented(spec.usage_notes, 4)}")
    if limitations and spec.limitations:
        lines.append("  Limitations:")
        lines += [f"    - {_indented(limitation, 6)}" for limitation in spec.limitations]
    return lines


def _indented(text: str, spaces: int) -> str:
    """Further lines of a text stay inside its tool's block."""
    return text.replace("\n", "\n" + " " * spaces)


def _example(example: ToolExample) -> list[str]:
    if example.call and not example.input:
        return [f"  Example: {example.description or example.call}"] + (
            [f"    Call: {example.call}"] if example.description else []
        )
    lines = [f"  Example: {example.description}", f"    Input: {spaced_json(example.input)}"]
    if example.explanation:
        lines.append(f"    Explanation: {example.explanation}")
    return lines


def spaced_json(value: Any) -> str:
    """JSON with a space inside the braces: ``{ "path": "./README.md" }``."""
    return _spaced(as_json(value))


def _spaced(value: Any) -> str:
    if isinstance(value, dict) and value:
        members = ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_spaced(item)}" for key, item in value.items())
        return f"{{ {members} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_spaced, value))}]"
    return json.dumps(value, ensure_ascii=False)


TYPES = TypeWords(
    "any",
    literal=lambda value: value if isinstance(value, str) else json.dumps(value),
    plain=lambda schema, _: str(schema.get("type", "any")),
)
"""Types in JSON Schema's words; listed values as they are: ``utf-8|ascii|base64``."""


def tool_instructions(spec: ToolSpec) -> str:
    """One tool in full, for a model that reads about its tools: what, what for, with what, to what, and how."""
    lines = [f"Tool: {spec.name}{_deprecation(spec)}", f"Description: {spec.description}"]
    if spec.usage_notes:
        lines.append(f"Purpose: {spec.usage_notes}")
    lines += _parameter_lines(spec)
    expected = spec.returns_description or (Writer(TYPES, spec.returns).write(spec.returns) if spec.returns else "")
    if expected:
        lines.append(f"Expected output: {expected}")
    lines += [f"Limitation: {limitation}" for limitation in spec.limitations]
    lines.append(f"Example call: {_example_call(spec)}")
    return "\n".join(lines)


def _parameter_lines(spec: ToolSpec) -> list[str]:
    root, given = parameters_of(spec)
    types = Writer(TYPES, root)
    lines = ["Parameters:" if given else "Parameters: none"]
    for name, schema, required in given:
        traits = [types.write(schema), "required" if required else "optional"]
        sub = schema if isinstance(schema, dict) else {}
        if "default" in sub:
            traits.append(f"default {json.dumps(as_json(sub['default']), ensure_ascii=False)}")
        description = f": {sub['description']}" if sub.get("description") else ""
        lines.append(f"- {name} ({', '.join(traits)}){description}")
    return lines


def _example_call(spec: ToolSpec) -> str:
    """The first example there is, or one made of the parameters that must be given."""
    for example in spec.examples:
        if example.call:
            return example.call
        if example.input:
            return f"{spec.name}({_keywords(example.input)})"
    root, given = parameters_of(spec)
    made = {name: _sample(sub, root) for name, sub, required in given if required}
    return f"{spec.name}({_keywords(made)})"


def _keywords(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(as_json(value), ensure_ascii=False)}" for name, value in arguments.items())


_SAMPLES: dict[str, Any] = {"string": "...", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


def _sample(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return _sample(lookup(root, reference), root, depth + 1)
    for keyword in ("examples", "enum"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    for keyword in ("default", "const"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return _sample(schema[keyword][0], root, depth + 1)
    kind = schema.get("type")
    return _SAMPLES.get(kind[0] if isinstance(kind, list) and kind else str(kind))
