"""Generated parameters of the kind that strict modes can say, and values for them."""

from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

Schema = dict[str, Any]

words = st.sampled_from(["a", "b", "c", "kind"])
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["x", "y", "z"])
DEFINITIONS: Schema = {
    "Point": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
        "additionalProperties": False,
    },
    "Tree": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "next": {"$ref": "#/$defs/Tree"},
            "rest": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    "Maybe": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
}


def _leaf() -> st.SearchStrategy[Schema]:
    return st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean"])}),
        st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-3, 3)}),
        st.fixed_dictionaries(
            {"type": st.sampled_from([["string", "null"], ["null", "integer"], ["string", "integer"]])}
        ),
        st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=4, unique_by=repr)}),
        st.fixed_dictionaries({"const": scalars}),
        st.fixed_dictionaries({"$ref": st.sampled_from([f"#/$defs/{name}" for name in DEFINITIONS])}),
    )


def _grown(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=1)}),
        objects_of(inner),
    )


@st.composite
def objects_of(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(words, inner, min_size=1, max_size=3))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


parameters = objects_of(st.recursive(_leaf(), _grown, max_leaves=6)).map(lambda schema: schema | {"$defs": DEFINITIONS})


@st.composite
def values_of(draw: st.DrawFn, schema: Schema, root: Schema, depth: int = 0) -> Any:
    """Values that are valid, or nearly."""
    if "$ref" in schema:
        return draw(values_of(root["$defs"][schema["$ref"].rpartition("/")[2]], root, depth + 1))
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            branches = schema[keyword] if depth < 4 else schema[keyword][-1:]
            return draw(values_of(draw(st.sampled_from(branches)), root, depth + 1))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    match draw(st.sampled_from(kinds)) if depth < 4 else kinds[-1]:
        case "object":
            return {
                name: draw(values_of(sub, root, depth + 1))
                for name, sub in schema["properties"].items()
                if name in schema["required"] or (depth < 4 and draw(st.booleans()))
            }
        case "array":
            return draw(st.lists(values_of(schema["items"], root, depth + 1), max_size=2 if depth < 4 else 0))
        case "null":
            return None
        case "string":
            return draw(st.sampled_from(["x", "y", ""]))
        case "boolean":
            return draw(st.booleans())
        case _:
            return draw(st.integers(-9, 9))


def is_valid(schema: Schema, root: Schema, value: Any) -> bool:
    return jsonschema_rs.Draft202012Validator({**schema, "$defs": root.get("$defs", {})}).is_valid(value)


def filled(value: Any, schema: Schema, root: Schema) -> Any:
    """A value as a model has to write it for a strict schema: null for each property that it leaves out."""
    if "$ref" in schema:
        return filled(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        tries = [filled(value, branch, root) for branch in schema["anyOf"]]
        fitting = (each for each, branch in zip(tries, schema["anyOf"], strict=True) if is_valid(branch, root, each))
        return next(fitting, value)
    if isinstance(value, list) and "items" in schema:
        return [filled(item, schema["items"], root) for item in value]
    if isinstance(value, dict) and "properties" in schema:
        return {name: filled(value.get(name), sub, root) for name, sub in schema["properties"].items()} | {
            name: item for name, item in value.items() if name not in schema["properties"]
        }
    return value
