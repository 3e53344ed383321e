import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.specs import specs

from toolcrib import ToolExample, ToolSpec
from toolcrib.formats import generate_prompt, signature, signatures, tool_instructions
from toolcrib.formats.schemas import MAX_LENGTH

READ_FILE = ToolSpec(
    name="read-file",
    description="Read the contents of a file from the file system",
    category="file-system",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path to the file to read"},
            "encoding": {"enum": ["utf-8", "ascii", "base64"], "default": "utf-8"},
        },
        "required": ["path"],
    },
    returns_description="The text of the file",
    examples=(
        ToolExample(
            description="Read a text file",
            input={"path": "./README.md", "encoding": "utf-8"},
            output="# My Project\n\nWelcome to...",
        ),
        ToolExample(description="Read a binary file as base64", input={"path": "./image.png", "encoding": "base64"}),
    ),
    usage_notes="Paths are relative to the current working directory",
    limitations=("Cannot read files larger than 10MB", "Requires read permissions"),
)
WRITE_FILE = ToolSpec(
    name="write-file",
    description="Write content to a file",
    category="file-system",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
)
HTTP_REQUEST = ToolSpec(name="http-request", description="Make an HTTP request", category="web")
TOOLS = [READ_FILE, WRITE_FILE, HTTP_REQUEST]


def test_the_prompt_to_the_letter() -> None:
    prompt = generate_prompt(
        TOOLS, include_examples=True, include_notes=True, group_by_category=True, max_examples_per_tool=1
    )
    assert (
        prompt
        == """\
Available Tools:

FILE SYSTEM TOOLS:
- read-file: Read the contents of a file from the file system
  Parameters: path (string), encoding (utf-8|ascii|base64)
  Example: Read a text file
    Input: { "path": "./README.md", "encoding": "utf-8" }
  Notes: Paths are relative to the current working directory

- write-file: Write content to a file
  Parameters: path (string), content (string)

WEB TOOLS:
- http-request: Make an HTTP request"""
    )


def test_what_is_not_asked_for_is_left_out() -> None:
    assert (
        generate_prompt(TOOLS)
        == """\
Available Tools:

- read-file: Read the contents of a file from the file system
  Parameters: path (string), encoding (utf-8|ascii|base64)

- write-file: Write content to a file
  Parameters: path (string), content (string)

- http-request: Make an HTTP request"""
    )


def test_limitations_and_all_examples() -> None:
    prompt = generate_prompt([READ_FILE], include_examples=True, include_limitations=True)
    assert prompt.endswith(
        """\
  Example: Read a binary file as base64
    Input: { "path": "./image.png", "encoding": "base64" }
  Limitations:
    - Cannot read files larger than 10MB
    - Requires read permissions"""
    )
    assert prompt.count("Example:") == 2


def test_categories_choose() -> None:
    assert "http-request" not in generate_prompt(TOOLS, categories=["file-system"])
    assert generate_prompt(TOOLS, categories=["database"]) == "No tools available."


def test_no_tools() -> None:
    assert generate_prompt([]) == "No tools available."


def test_a_tool_without_a_category_stands_with_the_others() -> None:
    assert "OTHER TOOLS:\n- lonely" in generate_prompt(
        [ToolSpec(name="lonely", description="Alone")], group_by_category=True
    )


def test_deprecated_tools_say_so() -> None:
    old = WRITE_FILE.with_changes(deprecated=True, replaced_by="save-file")
    assert "- write-file: Write content to a file (deprecated, use save-file)" in generate_prompt([old])
    assert "(deprecated)" in generate_prompt([old.with_changes(replaced_by="")])
    assert signature(old).startswith("write-file(path: str, content: str) (deprecated) - ")
    assert tool_instructions(old).startswith("Tool: write-file (deprecated, use save-file)")


def test_a_description_of_several_lines_stays_in_its_block() -> None:
    sly = ToolSpec(name="sly", description="Does a\n\n- rm: Remove everything")
    assert "\n- rm" not in generate_prompt([sly])


def test_nested_values_and_calls_in_examples() -> None:
    tool = ToolSpec(
        name="nest",
        description="d",
        examples=(
            ToolExample(description="deep", input={"a": {"b": [1, {"c": None}]}, "e": {}}, explanation="It is deep"),
            ToolExample(call="nest(a=1)"),
        ),
    )
    prompt = generate_prompt([tool], include_examples=True)
    assert '    Input: { "a": { "b": [1, { "c": null }] }, "e": {} }\n    Explanation: It is deep' in prompt
    assert "  Example: nest(a=1)" in prompt


def test_the_minimal_prompt_says_only_what_definitions_do_not() -> None:
    prompt = generate_prompt(TOOLS, minimal=True, include_notes=True, include_limitations=True)
    assert (
        prompt
        == """\
Tool Notes:

- read-file:
  Notes: Paths are relative to the current working directory
  Limitations:
    - Cannot read files larger than 10MB
    - Requires read permissions"""
    )
    assert generate_prompt(TOOLS, minimal=True) == ""


def test_instructions_tell_everything() -> None:
    assert (
        tool_instructions(READ_FILE)
        == """\
Tool: read-file
Description: Read the contents of a file from the file system
Purpose: Paths are relative to the current working directory
Parameters:
- path (string, required): Path to the file to read
- encoding (utf-8|ascii|base64, optional, default "utf-8")
Expected output: The text of the file
Limitation: Cannot read files larger than 10MB
Limitation: Requires read permissions
Example call: read-file(path="./README.md", encoding="utf-8")"""
    )


def test_instructions_make_up_a_call_where_there_is_no_example() -> None:
    assert tool_instructions(WRITE_FILE).endswith('Example call: write-file(path="...", content="...")')
    assert tool_instructions(HTTP_REQUEST).splitlines()[-2:] == ["Parameters: none", "Example call: http-request()"]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "x?: str"),
        ({"type": "integer", "default": 3}, "x: int = 3"),
        ({"type": "boolean", "default": False}, "x: bool = False"),
        ({"type": ["string", "null"], "default": None}, "x: str|None = None"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "x?: int|float"),
        ({"type": "array", "items": {"type": "string"}}, "x?: list[str]"),
        ({"type": "array"}, "x?: list"),
        ({"type": "object"}, "x?: dict"),
        ({"$ref": "#/$defs/P"}, "x?: {a: int, b?: str}"),
        ({"const": 1}, "x?: 1"),
        ({"type": "array", "items": {"$ref": "#/$defs/Loop"}}, "x?: list[{next?: {next?: Any}}]"),
        ({}, "x?: Any"),
        (True, "x?: Any"),
    ],
)
def test_signatures(schema: object, text: str) -> None:
    parameters = {
        "type": "object",
        "properties": {"x": schema},
        "$defs": {
            "P": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "required": ["a"],
            },
            "Loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}},
        },
    }
    assert (
        signature(ToolSpec(name="t", description="Do\n it.\n\nAt length.", parameters=parameters))
        == f"t({text}) - Do it."
    )


def wide(**x: object) -> ToolSpec:
    parameters = {"type": "object", "properties": {"x": x, "path": {"type": "string"}}}
    return ToolSpec(name="t", description="Wide.", parameters=parameters)


def test_a_type_of_very_many_parts_ends_in_an_ellipsis() -> None:
    """In whole parts, and what comes after it is told in full."""
    many = range(10_000)
    for schema, begins, ends in (
        ({"enum": [f"v{number}" for number in many]}, 'x?: "v0"|"v1"|', '"|...'),
        ({"anyOf": [{"const": number} for number in many]}, "x?: 0|1|2|", "|..."),
        (object_of(many), "x?: {p0?: int, p1?: int, ", "?: int, ...}"),
        ({"type": "array", "items": object_of(many)}, "x?: list[{p0?: int, ", "?: int, ...}]"),
        ({"const": "a" * 5_000}, 'x?: "aaaaa', "aaaaa..."),
    ):
        line = signature(wide(**schema))
        assert len(line) < MAX_LENGTH + 60
        assert line.startswith(f"t({begins}")
        assert line.endswith(f"{ends}, path?: str) - Wide."), line[-80:]
    enum = wide(enum=[f"v{number}" for number in many])
    for text in (generate_prompt([enum]), tool_instructions(enum)):
        assert len(text) < MAX_LENGTH + 200
        assert "v0|v1|v2|" in text
        assert "|..." in text
        assert "path (string" in text


def object_of(numbers: range) -> dict[str, object]:
    return {"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in numbers}}


def test_what_just_fits_is_told_in_full() -> None:
    names = [f"v{number:04}" for number in range((MAX_LENGTH - 100) // 8)]
    assert signature(wide(enum=names)) == f"t(x?: {'|'.join(map(repr, names))}, path?: str) - Wide.".replace("'", '"')


@given(st.lists(specs, max_size=4))
def test_one_line_a_tool(tools: list[ToolSpec]) -> None:
    assert len(signatures(tools).split("\n")) == max(1, len(tools))


@given(specs, st.booleans(), st.booleans(), st.booleans())
def test_every_tool_can_be_told_of(spec: ToolSpec, examples: bool, notes: bool, grouped: bool) -> None:
    prompt = generate_prompt([spec], include_examples=examples, include_notes=notes, group_by_category=grouped)
    assert f"- {spec.name}: " in prompt
    assert tool_instructions(spec).startswith(f"Tool: {spec.name}")
