"""OpenAI's Agents SDK: a registry's tools as its FunctionTools, and its function tools as ours."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import Any, NoReturn

from agents import FunctionTool, ModelBehaviorError, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.exceptions import UserError
from agents.strict_schema import ensure_strict_json_schema
from agents.tool import ValidToolOutputPydanticModelsTypeAdapter, set_function_tool_failure_error_function
from agents.tool_context import ToolContext as TheirContext
from agents.usage import Usage
from pydantic import ValidationError

from toolcrib.core.content import File, Image, Part, base64_of, part_of_base64
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolcribError, ToolFailedError
from toolcrib.core.json import copied
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define.callables import is_async_callable
from toolcrib.formats.openai import text_of
from toolcrib.formats.provider import Asked, arguments_of, part_text
from toolcrib.frameworks.adopted import (
    adopted,
    is_no_tool,
    part_of_url,
    refused,
    taken_back,
    wrong_arguments,
)
from toolcrib.frameworks.offer import Offer, failure_text, media_of

_NAME = "the OpenAI Agents SDK"


def export(offered: Callable[[], list[Offer]]) -> list[FunctionTool]:
    """A failure is the output of the call: the SDK ends a run for what a tool raises."""
    return [
        FunctionTool(
            name=offer.name,
            description=offer.short_description,
            params_json_schema=offer.parameters,
            on_invoke_tool=partial(_invoke, offer),
            strict_json_schema=_is_strict(offer.parameters),
        )
        for offer in offered()
    ]


async def _invoke(offer: Offer, ctx: TheirContext[Any], arguments: str) -> Any:
    result = await offer.call(_read(offer, arguments), ctx.tool_call_id)
    if not result.success:
        return failure_text(result)
    name = offer.spec.name
    if parts := media_of(result):
        return [_output(part, name) for part in parts]
    return text_of(result, name, [], _NAME)


def _read(offer: Offer, arguments: str) -> Any:
    """What cannot be read is a call all the same: it is counted, and refused with the reason."""
    try:
        return arguments_of(Asked(offer.name, arguments, ""), "OpenAI")
    except ToolcribError as error:
        return partial(_refuse, error)


def _refuse(error: ToolcribError, spec: ToolSpec) -> NoReturn:  # noqa: ARG001 - which tool it is, the error says
    raise error


def _output(part: Part, name: str) -> Any:
    match part:
        case Image(data, media_type):
            return ToolOutputImage(image_url=_url(data, media_type))
        case File(data, media_type, filename):
            return ToolOutputFileContent(file_data=_url(data, media_type), filename=filename or "file")
    return ToolOutputText(text=part_text(part, name, [], _NAME))


def _url(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64_of(data)}"


_STRICT_KEYWORDS = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items", "properties",
    "required", "title", "type",
})  # fmt: skip


def _is_strict(schema: JsonSchema) -> bool:
    """Whether strict mode takes the schema as it is: made strict, an optional parameter would be required."""
    try:
        return ensure_strict_json_schema(copied(schema)) == schema and _is_plain(schema)
    except UserError:
        return False


def _is_plain(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return True
    if not _STRICT_KEYWORDS.issuperset(schema):
        return False
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    return all(map(_is_plain, [*inner, schema.get("items")]))


# The other way


def adopt(tools: Iterable[Any], run_context: Any = None) -> list[Tool]:
    """``run_context`` is what a run of the SDK would be given as its context."""
    return [_adopted(each, run_context) for each in tools]


def _adopted(given: Any, run_context: Any) -> Tool:
    if not isinstance(given, FunctionTool):
        raise is_no_tool(given, _NAME, "only its function tools run outside of its runs")
    name = given.name
    if given.tool_input_guardrails or given.tool_output_guardrails:
        raise refused(name, _NAME, "has guardrails, which only a run of the SDK keeps")
    if given.is_enabled is not True:
        raise refused(name, _NAME, "is enabled by a run of the SDK, or not at all")
    asks = {"safety_level": SafetyLevel.DANGEROUS} if given.needs_approval else {}
    if (offer := _offer_of(given)) is not None:
        return taken_back(offer, name, **asks)
    raising = copy.copy(given)
    set_function_tool_failure_error_function(raising, _raising(given))

    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
        text = json.dumps(arguments)
        ctx = TheirContext(
            context=run_context,
            usage=Usage(),
            tool_name=name,
            tool_call_id=context.call_id or name,
            tool_arguments=text,
        )
        try:
            return _value(await raising.on_invoke_tool(ctx, text))
        except ModelBehaviorError as error:
            if not _is_of_arguments(error, name):
                raise
            if isinstance(error.__cause__, ValidationError):
                raise wrong_arguments(name, error.__cause__) from error
            # The SDK keeps the reason to itself, unless it may log what tools are given.
            raise InvalidArgumentsError(f"the arguments of tool {name!r} are not what it takes", tool=name) from error

    return adopted(
        name,
        given.description,
        given.params_json_schema,
        call,
        in_their_thread=_is_of_plain_function(given),
        timeout_seconds=given.timeout_seconds,
        **asks,
    )


def _is_of_plain_function(tool: FunctionTool) -> bool:
    function = getattr(tool, "__wrapped__", None)
    return function is not None and not is_async_callable(function)


def _offer_of(tool: FunctionTool) -> Offer | None:
    """What ``export`` made the tool of."""
    invoke = tool.on_invoke_tool
    return invoke.args[0] if isinstance(invoke, partial) and invoke.func is _invoke else None


def _is_of_arguments(error: Exception, tool: str) -> bool:
    """Whether it complains of the tool's arguments, and not of the model of an agent that the tool runs."""
    return isinstance(error, ModelBehaviorError) and str(error).startswith(f"Invalid JSON input for tool {tool}")


def _raising(tool: FunctionTool) -> Callable[..., Any] | None:
    """Raises what the tool's author would have the model told; None, which has the error raised, if nothing."""
    if tool._use_default_failure_error_function or tool._failure_error_function is None:  # noqa: SLF001
        return None
    tell = tool._failure_error_function  # noqa: SLF001 - no public name tells it

    async def tells(ctx: Any, error: Exception) -> str:
        if _is_of_arguments(error, tool.name):
            raise error
        told = tell(ctx, error)
        raise ToolFailedError(tool.name, str(await told if isawaitable(told) else told)) from error

    return tells


def _value(output: Any) -> Any:
    if isinstance(output, list | tuple):
        return [_part(each) for each in output]
    return _part(output)


def _part(value: Any) -> Any:
    if isinstance(value, dict) and "type" in value:
        with suppress(ValidationError):  # the SDK takes its own types as objects too
            value = ValidToolOutputPydanticModelsTypeAdapter.validate_python(value)
    match value:
        case ToolOutputText(text=text):
            return text
        case ToolOutputImage(image_url=str(url)):
            return part_of_url(url)
        case ToolOutputFileContent(file_data=str(data), filename=filename):
            if data.startswith("data:"):
                return part_of_url(data, filename or "")
            return part_of_base64(data, None, filename or "")
        case ToolOutputFileContent(file_url=str(url), filename=filename):
            return part_of_url(url, filename or "")
    return value
