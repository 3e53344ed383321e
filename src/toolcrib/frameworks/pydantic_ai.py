"""pydantic-ai: a registry as one of its toolsets, and its tools and toolsets as ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any

from pydantic import ValidationError
from pydantic_ai import (
    ApprovalRequired,
    BinaryContent,
    CallDeferred,
    CustomEvent,
    FunctionToolset,
    ModelRetry,
    RunContext,
    ToolFailed,
    UserError,
)
from pydantic_ai import Tool as TheirTool
from pydantic_ai.messages import CachePoint, FileUrl, ModelMessage, ModelResponse, TextContent, ToolReturn
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    ApprovalRequiredToolset,
    CombinedToolset,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_ai.usage import RunUsage
from pydantic_core import SchemaValidator, core_schema

from toolcrib.calling.sync import run_sync
from toolcrib.core.content import Audio, File, Image, Link, Part, part_of
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ApprovalRequiredError, InvalidArgumentsError, ToolFailedError, ToolValidationError
from toolcrib.core.json import as_json
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.tool import Tool
from toolcrib.formats.provider import part_text
from toolcrib.frameworks.adopted import (
    adopted,
    is_no_tool,
    refused,
    taken_back,
    takes_run_context,
    wrong_arguments,
)
from toolcrib.frameworks.offer import Offer, failure_text, media_of

_NAME = "pydantic-ai"
_ELSEWHERE = "is run by somebody else, outside of the agent"
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


@dataclass(kw_only=True)
class ToolProgressEvent(CustomEvent):
    """What a tool tells while it runs, in the stream of events of the agent's run."""

    kind: str
    fraction: float | None = None
    message: str = ""
    item: Any = None


class ToolcribToolset(AbstractToolset[Any]):
    """Asks the registry for its tools at each step. Arguments are checked by the tool, once."""

    def __init__(self, offered: Callable[[], list[Offer]], id: str | None) -> None:
        self.offered = offered
        self._id = id

    @property
    def id(self) -> str | None:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {offer.name: _OfferedTool.of(offer, self, ctx.max_retries) for offer in self.offered()}

    async def call_tool(
        self,
        name: str,  # noqa: ARG002
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        assert isinstance(tool, _OfferedTool)
        result = await tool.offer.told(tool_args, partial(_emit, ctx), ctx.tool_call_id)
        if result.success:
            return _content(result, tool.offer.spec.name)
        if result.error_code == InvalidArgumentsError.code:
            raise ModelRetry(result.error or "the arguments are wrong")
        raise ToolFailed(failure_text(result))


@dataclass(kw_only=True)
class _OfferedTool(ToolsetTool[Any]):
    offer: Offer

    @classmethod
    def of(cls, offer: Offer, toolset: AbstractToolset[Any], max_retries: int) -> _OfferedTool:
        definition = ToolDefinition(
            name=offer.name,
            description=offer.spec.description,
            parameters_json_schema=offer.parameters,
            return_schema=dict(offer.spec.returns) if offer.spec.returns else None,
            metadata={"tags": list(offer.spec.tags)} if offer.spec.tags else None,
        )
        return cls(
            toolset=toolset, tool_def=definition, max_retries=max_retries, args_validator=_ANY_OBJECT, offer=offer
        )


def export(offered: Callable[[], list[Offer]], id: str | None = None) -> ToolcribToolset:
    """Wrong arguments are told as ModelRetry, which its ``max_retries`` counts; any other failure as ToolFailed."""
    return ToolcribToolset(offered, id)


async def _emit(ctx: RunContext[Any], event: ToolEvent) -> None:
    told = ToolProgressEvent(kind=event.kind, fraction=event.fraction, message=event.message, item=as_json(event.item))
    with suppress(UserError):  # nobody can listen: the call is made outside of a run
        await ctx.emit(told)


def _content(result: ToolResult, name: str) -> Any:
    parts = [_given(part, name) for part in media_of(result)]
    return parts[0] if len(parts) == 1 else parts or as_json(result.data)


def _given(part: Part, name: str) -> Any:
    match part:
        case Image(data, media_type) | Audio(data, media_type) | File(data, media_type):
            return BinaryContent(data, media_type=media_type)
    return part_text(part, name, [], _NAME)


# The other way


def adopt(things: Iterable[Any], deps: Any = None) -> list[Tool]:
    """``deps`` are those of the context that each call gets; a model or a history it has none."""
    tools, toolsets = [], []
    for each in things:
        if isinstance(each, AbstractToolset):
            toolsets.append(each)
        elif isinstance(each, TheirTool) or takes_run_context(each):
            tools.append(each)
        else:
            raise is_no_tool(each, _NAME, "give its Tool(function), or a toolset")
    try:
        first = [FunctionToolset(tools)] if tools else []
    except Exception as error:
        raise ToolValidationError(f"{_NAME} does not take these tools together: {error}") from error
    return [tool for toolset in [*first, *toolsets] for tool in _adopted(toolset, deps)]


def _adopted(toolset: AbstractToolset[Any], deps: Any) -> list[Tool]:
    if isinstance(toolset, ToolcribToolset):
        return [taken_back(offer, offer.name) for offer in toolset.offered()]
    toolset.apply(_refuse_if_open)
    asks = _asks_for_approval(toolset)
    tools = run_sync(_tools(toolset, deps)).values()
    return [_tool(toolset, each, deps, asks or each.tool_def.kind == "unapproved") for each in tools]


def _refuse_if_open(toolset: AbstractToolset[Any]) -> None:
    if getattr(toolset, "is_running", False):
        raise ToolValidationError(
            f"{_NAME}'s {toolset.label:.60} is open, so that its connection belongs to who opened it; "
            "add it first and open it then, or leave that to its calls"
        )


def _asks_for_approval(toolset: AbstractToolset[Any]) -> bool:
    """Whether it is told to, or one of those that it is made of."""
    if isinstance(toolset, WrapperToolset):
        return isinstance(toolset, ApprovalRequiredToolset) or _asks_for_approval(toolset.wrapped)
    return isinstance(toolset, CombinedToolset) and any(map(_asks_for_approval, toolset.toolsets))


async def _tools(toolset: AbstractToolset[Any], deps: Any) -> dict[str, ToolsetTool[Any]]:
    ctx = _context(deps)
    async with _in_a_step(toolset, ctx) as there:
        return await there.get_tools(ctx)


@asynccontextmanager
async def _in_a_step(toolset: AbstractToolset[Any], ctx: RunContext[Any]) -> AsyncIterator[AbstractToolset[Any]]:
    """The toolset as a step of an agent's run has it: some are only made for one."""
    async with await toolset.for_run(ctx) as there:
        yield await there.for_run_step(ctx)


def _tool(toolset: AbstractToolset[Any], offered: ToolsetTool[Any], deps: Any, asks: bool) -> Tool:
    definition = offered.tool_def
    name = definition.name
    if definition.kind == "external":
        raise refused(name, _NAME, _ELSEWHERE)

    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
        ctx = _context(deps, name, context.call_id, approved=asks)  # who asks is dangerous here, and was approved
        async with _in_a_step(toolset, ctx) as there:
            tool = (await there.get_tools(ctx)).get(name)
            if tool is None:
                raise ToolFailedError(name, "its toolset does not offer it now")
            try:
                checked = tool.args_validator.validate_json(json.dumps(arguments))
            except ValidationError as error:
                raise wrong_arguments(name, error) from error
            try:
                if tool.args_validator_func is not None:
                    checking = tool.args_validator_func(ctx, **checked)
                    if isawaitable(checking):
                        await checking
                return _value(await there.call_tool(name, checked, ctx, tool))
            except (ModelRetry, ToolFailed) as error:
                return _failed(name, error)
            except ApprovalRequired as error:
                raise ApprovalRequiredError(
                    f"tool {name!r} wants this call to be approved, and nobody was asked: add its toolset to the "
                    "registry with approval_required()"
                ) from error
            except CallDeferred as error:
                raise ToolFailedError(name, f"it {_ELSEWHERE}") from error

    return adopted(
        name,
        definition.description,
        definition.parameters_json_schema,
        call,
        in_their_thread=_is_of_plain_function(offered),
        timeout_seconds=definition.timeout,
        safety_level=SafetyLevel.DANGEROUS if asks else None,
    )


def _is_of_plain_function(tool: ToolsetTool[Any]) -> bool:
    while isinstance(source := getattr(tool, "source_tool", None), ToolsetTool):  # of a CombinedToolset
        tool = source
    return not getattr(tool, "is_async", True)


def _context(deps: Any, name: str | None = None, call_id: str = "", *, approved: bool = False) -> RunContext[Any]:
    return RunContext(
        deps=deps,
        model=_NoModel(),
        usage=RunUsage(),
        tool_name=name,
        tool_call_id=call_id or None,
        tool_call_approved=approved,
    )


class _NoModel(Model):
    """In the place of the model that runs the agent: here there is none."""

    @property
    def model_name(self) -> str:
        return "none"

    @property
    def system(self) -> str:
        return "toolcrib"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        raise NotImplementedError("a tool that runs in a registry has no model to ask")


def _failed(name: str, error: ModelRetry | ToolFailed) -> ToolResult:
    failure = ToolFailedError(name, error.message)
    return ToolResult.failure_result(failure.message, failure.code, retryable=isinstance(error, ModelRetry))


def _value(output: Any) -> Any:
    if isinstance(output, ToolReturn):
        more = [output.content] if isinstance(output.content, str) else output.content or []
        said = [each for each in more if not isinstance(each, CachePoint)]
        output = [output.return_value, *said] if said else output.return_value
    if isinstance(output, list | tuple):
        return [_part(each) for each in output]
    return _part(output)


def _part(value: Any) -> Any:
    if isinstance(value, BinaryContent):
        return part_of(value.data, value.media_type)
    if isinstance(value, TextContent):
        return value.content
    return Link(value.url) if isinstance(value, FileUrl) else value


__all__ = ["ToolProgressEvent", "ToolcribToolset", "adopt", "export"]
