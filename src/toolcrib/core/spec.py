"""ToolSpec: what a tool is, said once.

Every field has one idea of absence: text is the empty string, a list is the empty tuple, a mapping is the empty dict.
``parameters`` is always a JSON Schema of an object.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from toolcrib.core.addresses import check_service_url, is_url
from toolcrib.core.errors import InvalidNameError, ToolValidationError, did_you_mean
from toolcrib.core.json import check_json, read_json, refuse_flag, same
from toolcrib.core.names import check_name
from toolcrib.core.ranking import index_words
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.schema import JsonSchema, compile_schema

Isolation = Literal["", "inline", "thread", "process"]
JsonObject = Annotated[dict[str, Any], AfterValidator(check_json)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(refuse_flag)]
Text = Annotated[str, AfterValidator(check_json)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)


class ToolExample(_Value):
    """One use of a tool. ``call`` is the use as text, if that is all there is: ``click(selector="#ok")``."""

    description: Text = ""
    input: JsonObject = Field(default_factory=dict)
    output: Annotated[Any, AfterValidator(check_json)] = None
    explanation: Text = ""
    call: Text = ""


class Binding(_Value):
    """How a catalogued spec becomes runnable, as data; empty means that only its description is known."""

    python: Text = Field(
        default="", description="a tool that ships, by its name, or 'package.module:attribute' as the operator lists it"
    )
    service_url: Text = Field(default="", description="an HTTP service that takes the arguments as JSON")
    system_function_rpc_id: Text = Field(default="", description="a function that the host process has registered")
    source_code_link: Text = Field(default="", description="an uploaded bundle")
    mcp: Text = Field(default="", description="an MCP server's address or command")
    command: Text = Field(
        default="", description="a program that reads the arguments as JSON and writes the result as JSON"
    )

    @field_validator("service_url")
    @classmethod
    def _service_can_be_called(cls, url: str) -> str:
        if url:
            check_service_url(url)
        return url

    @field_validator("mcp")
    @classmethod
    def _server_can_be_called(cls, target: str) -> str:
        if is_url(target):
            check_service_url(target.partition("#")[0])
        return target

    @property
    def nearest(self) -> str:
        """The field that counts, of several the nearest to this process; empty if none is given.

        An upload always leaves a link, so what was said beside it comes first.
        """
        return next((way for way in _NEAREST_FIRST if getattr(self, way)), "")

    @property
    def shipped(self) -> str:
        """The name of the shipped tool that ``python`` means; empty if it is somebody's ``module:attribute``."""
        name = self.python.removeprefix(_SHIPPED_BEFORE)
        return "" if ":" in name else name

    @property
    def mcp_server(self) -> str:
        """The MCP server's address or command, without the tool's name there."""
        return self.mcp.partition("#")[0]

    @property
    def mcp_tool(self) -> str:
        """The tool's name at its MCP server; empty if it is its own."""
        return self.mcp.partition("#")[2]

    def __bool__(self) -> bool:
        return any(self.__dict__.values())


_NEAREST_FIRST = ("python", "system_function_rpc_id", "command", "service_url", "mcp", "source_code_link")
_SHIPPED_BEFORE = "toolcrib.toolsets.browser.standalone:"
"""What records of the first release have before the name of a shipped tool."""


def no_parameters() -> JsonSchema:
    return {"type": "object", "properties": {}}


class ToolSpec(_Value):
    """The one record of a tool. Frozen: a change is a copy (``spec.with_changes(...)``)."""

    # Identity
    name: Text
    display_name: Text = ""
    description: Text
    version: Text = ""
    author: Text = ""
    deprecated: bool = False
    replaced_by: Text = ""
    # Classification
    tool_type: Text = ""
    category: Text = ""
    tags: tuple[Text, ...] = ()
    capabilities: tuple[Text, ...] = ()
    # Interface
    parameters: JsonSchema = Field(default_factory=no_parameters)
    returns: JsonSchema = Field(default_factory=dict, description="JSON Schema of the result; empty means any")
    returns_description: Text = ""
    api_spec: JsonObject = Field(
        default_factory=dict, description="the interface as published, if it says more than parameters and returns"
    )
    actions: JsonObject = Field(default_factory=dict, description="custom actions in the publisher's own DSL")
    # Usage
    examples: tuple[ToolExample, ...] = ()
    usage_notes: Text = ""
    limitations: tuple[Text, ...] = ()
    manual: Text = ""
    # Stacking
    compatibilities: tuple[Text, ...] = ()
    incompatible_with: tuple[Text, ...] = ()
    required_config: tuple[Text, ...] = ()
    package_name: Text = ""
    pip_install_command: Text = ""
    # Model fit
    required_capabilities: tuple[Text, ...] = ()
    optimal_capabilities: tuple[Text, ...] = ()
    requires_page: bool = False
    is_terminal: bool = False
    # Execution
    execution_mode: Text = ""
    isolation: Isolation = ""
    timeout_seconds: Seconds | None = None
    cacheable: bool = Field(default=False, description="equal arguments give an equal result, for a while")
    max_result_characters: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="a longer result reaches a model as a preview and a handle"
    )
    safety_level: SafetyLevel = SafetyLevel.SAFE
    binding: Binding = Field(default_factory=Binding)
    # Governance
    policy_rule_uri: Text = ""
    validation_policy_rule_uri: Text = ""
    validation_mode: Text = ""
    credentials: JsonObject = Field(default_factory=dict, repr=False)
    # Everything else
    metadata: JsonObject = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name_is_a_name(cls, name: str) -> str:
        return check_name(name)

    @model_validator(mode="after")
    def _schemas_are_schemas(self) -> Self:
        parameters = self.parameters
        compile_schema(parameters, f"the parameters of {self.name!r}")
        if parameters.get("type", "object") != "object":
            raise ToolValidationError(
                f"the parameters of {self.name!r} must be a JSON Schema of type 'object', not {parameters['type']!r}"
            )
        if self.returns:
            compile_schema(self.returns, f"the output schema of {self.name!r}")
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content. Credentials do not count: a digest is public and must not help to guess them."""
        return digest_of(self.model_dump(mode="json", exclude={"credentials"}))

    @cached_property
    def definition_digest(self) -> str:
        """SHA-256 of what the tool is, without how it runs: operations may change and leave it alone."""
        return definition_digest_of(self.model_dump(mode="json", exclude={"credentials"}))

    @cached_property
    def index_words(self) -> str:
        """What a search finds the tool by."""
        return index_words(vars(self))

    def __hash__(self) -> int:
        return hash(self.digest)

    def with_changes(self, **changes: Any) -> ToolSpec:
        """A copy with some fields changed, checked as a new spec would be."""
        return ToolSpec.parse(self.model_dump() | changes)

    def to_dict(self) -> dict[str, Any]:
        """The spec as JSON values, every field present. Holds the credentials."""
        return self.model_dump(mode="json")

    def to_json(self) -> str:
        return self.model_dump_json()

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> ToolSpec:
        """A spec from plain data; ToolValidationError names the field that is wrong."""
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise explain(error, data, known=cls.model_fields) from None

    @classmethod
    def from_json(cls, text: str | bytes) -> ToolSpec:
        try:
            data = read_json(text)
        except ValueError as error:
            raise ToolValidationError(f"the text is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise ToolValidationError(f"a tool is a JSON object, not a {type(data).__name__}")
        return cls.parse(data)


EXECUTION_FIELDS = (
    "execution_mode", "isolation", "timeout_seconds", "cacheable", "max_result_characters", "safety_level", "binding",
    "policy_rule_uri", "validation_policy_rule_uri", "validation_mode", "credentials",
)  # fmt: skip
"""How and by which rules a tool runs. What is not among them is its definition: what it is, for who looks for it."""

_ADDED = {"cacheable": False, "max_result_characters": None}
"""Fields that came later, and what they are where nobody gave them: specs from before keep their digests."""
_ADDED_BINDINGS = ("command",)
_NEVER = object()


def explain(
    error: ValidationError, data: Mapping[str, Any] | None = None, what: str = "tool", known: Iterable[str] = ()
) -> ToolValidationError:
    """Pydantic's complaint as one of ours: it names the record, the field, and which of ``known`` may be meant."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ToolValidationError):
        return cause
    name = data.get("name") if data is not None else None
    subject = f"{what} {name!r}" if isinstance(name, str) and len(name) <= 128 else f"the {what}"
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return ToolValidationError(f"{subject} has no {field!r}; it is required")
    if first["type"] == "extra_forbidden":
        return ToolValidationError(
            f"{subject} has a field {field!r} that does not exist{did_you_mean(str(first['loc'][-1]), known)}"
        )
    if field == "name":
        return InvalidNameError(f"field 'name' of {subject}: {first['msg']}")
    complaint = str(cause) if isinstance(cause, ValueError) else _lower_first(first["msg"])
    return ToolValidationError(f"field {field!r} of {subject}: {complaint}")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def digest_of(document: Mapping[str, Any]) -> str:
    """The digest of the spec that a document holds; it need not be parsed for that."""
    content = {
        key: value for key, value in document.items() if key != "credentials" and _ADDED.get(key, _NEVER) != value
    }
    if isinstance(binding := content.get("binding"), Mapping):
        content["binding"] = {way: to for way, to in binding.items() if to or way not in _ADDED_BINDINGS}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def definition_digest_of(document: Mapping[str, Any]) -> str:
    """The digest of the definition in a spec's document; empty if there is none."""
    return digest_of(_definition(document)) if document else ""


def same_definition(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two documents differ at most in how the tool runs."""
    return same(_definition(one), _definition(other))


def _definition(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in EXECUTION_FIELDS}


RULE_FIELDS = ("policy_rule_uri", "validation_policy_rule_uri")


def rules_named(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The policy rules that a tool says it is under, each once."""
    return tuple(dict.fromkeys(uri for field in RULE_FIELDS if (uri := document.get(field))))
