"""Records of tools in every shape that is read: the bundle's spec.json, ToolEntry, ToolSpec, The Brain's metadata, and
the definitions and calls of the providers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.attacks.fuzz.target import Attack, Fault, Target, refusing
from tests.support.archives import SPEC as ENTRY

from toolcrib.catalogue.creator import changed_spec, checked_spec
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import from_definition, handover, parse_call
from toolcrib.formats.bundle import parse_json_object
from toolcrib.formats.table import FORMATS
from toolcrib.formats.toolentry import entry_changes, entry_to_spec, spec_to_entry
from toolcrib.formats.toolmetadata import ToolMetadata
from toolcrib.surfaces.http.problems import json_bytes

_PROVIDERS = ("openai", "openrouter", "anthropic", "gemini", "mcp")


def _kept(spec: ToolSpec) -> None:
    """What may be published can be handed out in every shape, and comes back from the lossless one as it was."""
    with refusing():
        spec = checked_spec(spec)
        entry = spec_to_entry(spec)
        if entry_to_spec(entry).digest != spec.digest:
            raise Fault("an entry lost something on its way to a spec and back")
        json_bytes(entry)
        spec.index_words.encode()
        if ToolSpec.from_json(spec.to_json()).digest != spec.digest:
            raise Fault("a spec lost something on its way to JSON and back")
        for name in FORMATS:
            with refusing():
                json_bytes(handover([spec], name).definitions)
        with refusing():
            ToolMetadata.from_spec(spec)


def _read_as_everything(value: dict[str, Any]) -> None:
    known = entry_to_spec(ENTRY)
    with refusing():
        _kept(entry_to_spec(value))
    with refusing():
        _kept(changed_spec(known, entry_changes(known, value)))
    with refusing():
        _kept(ToolSpec.parse(value))
    with refusing():
        _kept(ToolMetadata.parse(value).to_spec())
    for name in _PROVIDERS:
        with refusing():
            _kept(from_definition(name, value))
        with refusing():
            parse_call(name, value)


@contextmanager
def _opened(_folder: Path) -> Iterator[Attack]:
    def attack(content: bytes) -> None:
        with refusing():
            _kept(ToolSpec.from_json(content))
        with refusing():
            _read_as_everything(parse_json_object(content.decode(errors="replace"), "spec.json"))

    yield attack


_SPEC: Mapping[str, Any] = {
    "name": "count-words", "description": "Count words.", "version": "1.2.0", "tags": ["text"], "tool_type": "parser",
    "parameters": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
            "most": {"anyOf": [{"type": "integer", "maximum": 10}, {"type": "null"}], "default": 5},
            "tree": {"$ref": "#/$defs/tree"},
        },
        "required": ["text"],
        "$defs": {"tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}},
    },
    "returns": {"type": "array", "items": {"enum": ["a", 1, None]}},
    "examples": [{"input": {"text": "a"}, "output": ["a"], "description": "one"}],
    "compatibilities": ["type:browser"], "required_config": ["KEY"], "timeout_seconds": 2.5, "isolation": "process",
    "safety_level": "medium", "binding": {"system_function_rpc_id": "count"}, "credentials": {"key": "k"},
    "metadata": {"owner": "a", "nested": {"n": [1, 2.5, None]}},
}  # fmt: skip
_METADATA: Mapping[str, Any] = {
    "name": "playwright", "description": "A browser.", "tool_type": "browser", "package_name": "playwright",
    "execution_mode": "async", "capabilities": ["javascript_rendering"], "compatibilities": ["type:parser"],
}  # fmt: skip
_CALLS: tuple[Mapping[str, Any], ...] = (
    {"id": "c1", "type": "function", "function": {"name": "count-words", "arguments": '{"text": "a"}'}},
    {"type": "tool_use", "id": "c1", "name": "count-words", "input": {"text": "a"}},
    {"functionCall": {"name": "count_words", "args": {"text": "a"}}},
    {"name": "count-words", "args": {"text": "a"}, "id": "c1", "type": "tool_call"},
)


def _corpus() -> tuple[bytes, ...]:
    spec = ToolSpec.parse(_SPEC)
    shapes = [ENTRY, spec_to_entry(spec), spec.to_dict(), _SPEC, _METADATA, *_CALLS]
    shapes += [handover([spec], name).definitions[0] for name in _PROVIDERS]
    return tuple(json.dumps(shape).encode() for shape in shapes)


_WORDS = (
    "$ref", "$defs", "$id", "$schema", "$dynamicRef", "allOf", "anyOf", "not", "if", "type", "properties", "items",
    "prefixItems",
    "required", "default", "const", "enum", "pattern", "format", "maxLength", "multipleOf", "toolcrib", "metadata",
    "binding",
    "entrypoints", "execute", "input", "output", "name", "tool_id", "version", "capabilities", "arguments",
)  # fmt: skip

TARGET = Target("specs", _corpus(), tuple(json.dumps(word).encode() for word in _WORDS), _opened, 5000)
