"""ToolEntry and ToolSpec say the same thing, both ways."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import open_catalogue
from toolcrib.core.errors import InvalidNameError, InvalidSchemaError, ToolTimeoutError, ToolValidationError
from toolcrib.core.json import same
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import Binding, ToolExample, ToolSpec
from toolcrib.dialects.toolsdb import ToolEntry
from toolcrib.formats import handover
from toolcrib.formats.toolentry import FIELD_PATHS, document_to_entry, entry_changes, entry_to_spec, spec_to_entry

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,20}", fullmatch=True)
texts = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(-5, 5) | texts
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=5
)
objects = st.dictionaries(texts, json_values, max_size=3)
schemas = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"a": {"type": "integer"}}},
        {"properties": {"a": {"default": True}}},
        {"properties": {"a": {"default": 1}}},
        {},
    ]
)
outputs = st.sampled_from([{}, {"type": "string"}, {"type": "object", "properties": {}}])
interfaces = st.one_of(
    st.just({}),
    st.fixed_dictionaries({}, optional={"input": schemas, "output": outputs}),
    st.builds(lambda i, o: {"entrypoints": {"execute": {"input": i, "output": o}}}, schemas, outputs),
    st.just({"input": {"type": "string"}}),
    st.just({"openapi": "3.1.0", "paths": {}}),
)
reserved = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {},
        optional={
            "version": texts,
            "author": texts,
            "deprecated": st.booleans() | st.integers(0, 1),
            "api_spec": interfaces,
            "parameters": schemas,
            "capabilities": st.lists(texts, max_size=2),
            "binding": st.fixed_dictionaries({}, optional={"python": texts, "mcp": texts}),
            "metadata": st.just({"toolcrib": 1}) | st.just({"toolcrib": {"version": "2"}}) | objects,
            "unknown": texts,
        },
    ),
)
deadlines = json_values | st.sampled_from([5, 0.5, 0, -1, True, "5", None])
metadata = st.builds(
    lambda base, ours: base | ours,
    st.fixed_dictionaries(
        {},
        optional={
            "version": texts,
            "capabilities": st.lists(texts, max_size=2),
            "a": json_values,
            "timeout_seconds": deadlines,
        },
    ),
    st.fixed_dictionaries({}, optional={"toolcrib": reserved}),
)
urls = st.sampled_from(["", "http://tools.example", "https://[::1]:8080/run?x=1"])
entries = st.builds(
    ToolEntry,
    tool_id=names,
    tool_metadata=metadata.map(lambda given: {key: value for key, value in given.items() if key != "toolcrib"}),
    tool_search_description=texts,
    tool_tags=st.lists(texts, max_size=3),
    tool_type=texts,
    tool_man_page_doc=texts,
    tool_api_spec=interfaces,
    tool_custom_actions_dsl_map=objects,
    default_tool_usage_credentials=objects,
    tool_execution_mode=texts,
    tool_policy_rule_uri=texts,
    tool_source_code_link=texts,
    tool_service_url=urls,
    tool_system_function_rpc_id=texts,
    tool_validation_policy_rule_uri=texts,
    tool_validation_mode=texts,
)
specs = st.builds(
    ToolSpec,
    name=names,
    description=texts,
    version=texts,
    author=texts,
    display_name=texts,
    deprecated=st.booleans(),
    tags=st.lists(texts, max_size=2).map(tuple),
    capabilities=st.lists(texts, max_size=2).map(tuple),
    parameters=schemas,
    returns=outputs,
    api_spec=interfaces,
    examples=st.lists(st.builds(ToolExample, input=objects, call=texts), max_size=1).map(tuple),
    timeout_seconds=st.none() | st.floats(0.5, 9),
    safety_level=st.sampled_from(["safe", "dangerous"]),
    binding=st.builds(Binding, python=texts, service_url=urls, mcp=urls | st.just("npx -y server")),
    metadata=metadata,
    credentials=objects,
)


@given(entries)
def test_an_entry_comes_back_as_it_was(entry: ToolEntry) -> None:
    again = ToolEntry.from_spec(entry.to_spec())
    assert again == entry
    assert same(again.to_dict(), entry.to_dict())  # True is not 1


@given(entries, reserved)
def test_what_an_entry_says_under_our_word_is_read_or_refused(entry: ToolEntry, ours: Any) -> None:
    entry = dataclasses.replace(entry, tool_metadata=entry.tool_metadata | {"toolcrib": ours})
    try:
        spec = entry.to_spec()
    except ToolValidationError as error:
        assert "tool_metadata.toolcrib" in str(error)  # noqa: PT017 - both ends are right
        return
    said = ours if "metadata" in ours else ours | {"metadata": without_ours(entry.tool_metadata)}
    found = spec.to_dict()
    assert all(same(found[name], value) for name, value in said.items() if name not in {"binding", "deprecated"})
    assert all(found["binding"][name] == value for name, value in said.get("binding", {}).items())
    assert found["deprecated"] == said.get("deprecated", False)
    assert ToolEntry.from_spec(spec).to_spec() == spec


def without_ours(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != "toolcrib"}


@given(specs)
def test_a_spec_comes_back_as_it_was(spec: ToolSpec) -> None:
    again = ToolEntry.from_spec(spec).to_spec()
    assert again == spec
    assert again.to_dict() == spec.to_dict()


@given(specs)
def test_an_entry_given_back_unchanged_changes_nothing(spec: ToolSpec) -> None:
    again = spec.with_changes(**entry_changes(spec, spec_to_entry(spec)))
    assert again == spec


def test_the_fields_are_those_of_the_record() -> None:
    assert [field.name for field in dataclasses.fields(ToolEntry)] == list(FIELD_PATHS)
    assert ToolEntry().to_dict().keys() == FIELD_PATHS.keys()


@pytest.mark.parametrize("form", ["plain", "entrypoints"])
def test_both_published_forms_give_parameters(form: str) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    interface = {"input": schema, "output": {"type": "string"}}
    api_spec = interface if form == "plain" else {"entrypoints": {"execute": interface, "execute_command": {}}}
    spec = ToolEntry(tool_id="t", tool_api_spec=api_spec).to_spec()
    assert (spec.parameters, spec.returns, spec.api_spec) == (schema, {"type": "string"}, api_spec)


def test_version_author_and_capabilities_are_read_from_the_metadata_and_stay_there() -> None:
    metadata = {"version": "v1.0", "author": "Ann", "capabilities": ["ner"], "language": "en"}
    spec = ToolEntry(tool_id="t", tool_metadata=metadata).to_spec()
    assert (spec.version, spec.author, spec.capabilities) == ("v1.0", "Ann", ("ner",))
    assert spec.metadata == metadata


@pytest.mark.parametrize("said", [5, 2.5])
def test_a_deadline_in_the_metadata_counts_and_stays_there(said: float) -> None:
    spec = ToolEntry(tool_id="t", tool_metadata={"timeout_seconds": said, "language": "en"}).to_spec()
    assert spec.timeout_seconds == said
    assert spec.metadata == {"timeout_seconds": said, "language": "en"}
    assert ToolEntry.from_spec(spec).tool_metadata == spec.metadata
    assert entry_changes(spec, {"tool_metadata": {"timeout_seconds": 7}})["timeout_seconds"] == 7
    assert entry_changes(spec, {"tool_metadata": {}})["timeout_seconds"] is None
    assert "timeout_seconds" not in entry_changes(spec.with_changes(timeout_seconds=9), {"tool_metadata": {}})
    ours = {"timeout_seconds": said, "toolcrib": {"timeout_seconds": 9}}
    assert ToolEntry(tool_id="t", tool_metadata=ours).to_spec().timeout_seconds == 9


@pytest.mark.parametrize("said", [0, -1, True, "5", None, [5]])
def test_what_cannot_be_a_deadline_is_metadata_alone(said: object) -> None:
    spec = ToolEntry(tool_id="t", tool_metadata={"timeout_seconds": said}).to_spec()
    assert (spec.timeout_seconds, spec.metadata) == (None, {"timeout_seconds": said})


def test_a_document_of_a_release_with_fewer_fields_is_an_entry():
    spec = ToolEntry(tool_id="t", tool_service_url="https://example.com").to_spec()
    document = spec.to_dict()
    del document["binding"]["command"], document["cacheable"]
    assert document_to_entry(document) == spec_to_entry(spec)


def test_a_deadline_beyond_all_numbers_is_refused_as_a_number():
    with pytest.raises(ToolValidationError, match="tool_metadata"):
        ToolEntry(tool_id="t", tool_metadata={"timeout_seconds": 10**400}).to_spec()


async def test_a_tool_runs_with_the_deadline_in_its_metadata() -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    catalogue = open_catalogue("memory:", functions={"wait": wait_for_ever})
    entry = ToolEntry(tool_id="t", tool_metadata={"timeout_seconds": 0.05}, tool_system_function_rpc_id="wait")
    catalogue.publish(entry.to_spec())
    with pytest.raises(ToolTimeoutError, match=r"0\.05 s"):
        await catalogue.tool("t").execute({})
    catalogue.close()


def test_a_partial_entry_changes_only_what_it_names() -> None:
    spec = ToolSpec(
        name="t", description="d", display_name="Tee", version="1.0.0", metadata={"version": "1.0.0", "x": 1},
        binding=Binding(service_url="http://a.example", python="a:b"),
    )  # fmt: skip
    changed = spec.with_changes(
        **entry_changes(
            spec, {"tool_type": "transformer", "tool_metadata": {"version": "2.0.0"}, "tool_service_url": ""}
        )
    )
    assert changed.version == "2.0.0"
    assert changed.display_name == "Tee"
    assert changed.binding == Binding(python="a:b")
    assert changed.tool_type == "transformer"


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ({}, InvalidNameError, "not a tool name"),
        ({"tool_id": "a/b"}, InvalidNameError, "'a/b'"),
        ({"tool_id": "t", "tool_tag": []}, ToolValidationError, "did you mean 'tool_tags'"),
        ({"tool_id": "t", "tool_metadata": []}, ToolValidationError, "'tool_metadata'"),
        ({"tool_id": "t", "tool_tags": "nlp"}, ToolValidationError, "'tool_tags'"),
        ({"tool_id": "t", "tool_man_page_doc": 3}, ToolValidationError, "'tool_man_page_doc'"),
        ({"tool_id": "t", "tool_service_url": 3}, ToolValidationError, "'tool_service_url'"),
        (
            {"tool_id": "t", "tool_service_url": "not a url"},
            ToolValidationError,
            "'tool_service_url'.*'not a url' is not",
        ),
        ({"tool_id": "t", "tool_service_url": "ftp://x.example"}, ToolValidationError, "'tool_service_url'"),
        ({"tool_id": "t", "tool_service_url": "http://[::1"}, ToolValidationError, "'tool_service_url'"),
        ({"tool_id": "t", "tool_service_url": "https://"}, ToolValidationError, "'tool_service_url'"),
        ({"tool_id": "t", "tool_api_spec": {"input": {"type": 3}}}, InvalidSchemaError, "parameters of 't'"),
    ],
)
def test_what_is_wrong_is_named(data: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        entry_to_spec(data)
    if words.startswith("did"):
        with pytest.raises(error, match=words):
            ToolEntry.from_dict(data)


def test_what_our_word_says_is_read_whole_numbers_too() -> None:
    metadata = {"toolcrib": {"safety_level": "dangerous", "timeout_seconds": 3}, "x": 1}
    spec = ToolEntry(tool_id="t", tool_metadata=metadata).to_spec()
    assert (spec.safety_level, spec.timeout_seconds, spec.metadata) == (SafetyLevel.DANGEROUS, 3.0, {"x": 1})
    [definition] = handover([spec], "mcp").definitions
    assert definition["annotations"]["readOnlyHint"] is False


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ({"safety_level": "dangerous", "safety_levle": 1}, r"toolcrib\.safety_levle'.*did you mean 'safety_level'"),
        ({"safety_level": "harmless"}, r"'tool_metadata\.toolcrib\.safety_level'"),
        ({"timeout_seconds": "soon"}, r"'tool_metadata\.toolcrib\.timeout_seconds'"),
        ({"timeout_seconds": True}, r"'tool_metadata\.toolcrib\.timeout_seconds'.*true and false are not numbers"),
        ({"timeout_seconds": -1}, r"'tool_metadata\.toolcrib\.timeout_seconds'"),
        ({"examples": [{"inptu": {}}]}, r"'tool_metadata\.toolcrib\.examples\.0\.inptu'"),
        ({"binding": {"service_url": "http://a.example"}}, r"'tool_metadata\.toolcrib\.binding\.service_url'"),
        ({"binding": {"python": 3}}, r"'tool_metadata\.toolcrib\.binding\.python'"),
        ({"binding": "a:b"}, r"'tool_metadata\.toolcrib\.binding'"),
        ({"metadata": 3}, r"'tool_metadata\.toolcrib\.metadata'"),
        ({"metadata": {}}, r"'tool_metadata\.toolcrib\.metadata'.*beside other metadata, 'x'"),
        ({"api_spec": {"openapi": "3.1.0"}}, r"'tool_metadata\.toolcrib\.api_spec'"),
        ({"name": "other"}, r"'tool_metadata\.toolcrib\.name'"),
        ("ours", r"'tool_metadata\.toolcrib'"),
        (None, r"'tool_metadata\.toolcrib'"),
    ],
)
def test_what_our_word_cannot_say_is_refused_by_name(ours: Any, words: str) -> None:
    with pytest.raises(ToolValidationError, match=words):
        entry_to_spec({"tool_id": "t", "tool_metadata": {"x": 1, "toolcrib": ours}})


def test_a_partial_entry_may_speak_of_the_other_bindings() -> None:
    spec = ToolSpec(name="t", description="d", binding=Binding(service_url="http://a.example"))
    changes = entry_changes(spec, {"tool_metadata": {"toolcrib": {"binding": {"mcp": "https://m.example"}}}})
    assert spec.with_changes(**changes).binding == Binding(service_url="http://a.example", mcp="https://m.example")


def test_credentials_are_not_in_the_repr() -> None:
    entry = ToolEntry(tool_id="t", default_tool_usage_credentials={"key": "hunter2"})
    assert "hunter2" not in repr(entry)
    assert "hunter2" not in repr(entry.to_spec())
