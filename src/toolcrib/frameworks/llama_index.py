"""LlamaIndex: a registry's tools as its FunctionTools, and its tools as ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from llama_index.core.base.llms.types import AudioBlock, ContentBlock, DocumentBlock, ImageBlock, TextBlock
from llama_index.core.tools import AsyncBaseTool, BaseTool, FunctionTool, ToolMetadata, ToolOutput
from llama_index.core.tools.types import adapt_to_async_tool
from llama_index.core.workflow import Context, Event
from pydantic import BaseModel, PydanticUserError, create_model

from toolcrib.calling.sync import run_sync
from toolcrib.core.content import SIMPLE, Audio, File, Image, Part, base64_of, part_of
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolFailedError
from toolcrib.core.json import as_json
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.core.tool import Tool
from toolcrib.formats.openai import text_of
from toolcrib.formats.provider import part_text
from toolcrib.frameworks.adopted import adopted, is_no_tool, part_of_url, refused, taken_back
from toolcrib.frameworks.offer import Offer, failure_text, media_of

_NAME = "LlamaIndex"
_CONTEXT = "toolcrib:context"
"""Under which an agent gives its context: no parameter has such a name by chance."""


class ToolProgressEvent(Event):
    """What a tool tells while it runs, in the stream of events of the agent's run."""

    tool_name: str
    kind: str
    fraction: float | None = None
    message: str = ""
    item: Any = None


class ToolcribTool(FunctionTool):
    """A failure is its output, marked ``is_error``. Arguments are checked by the tool, once."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        super().__init__(async_fn=self._by_name, metadata=_metadata(offer))
        self.requires_context, self.ctx_param_name = True, _CONTEXT

    async def _by_name(self, **arguments: Any) -> Any:
        """What LlamaIndex reads the signature of."""
        return (await self.acall(**arguments)).raw_output

    def call(self, /, *args: Any, **arguments: Any) -> ToolOutput:
        return run_sync(self.acall(*args, **arguments))

    async def acall(self, /, *args: Any, **arguments: Any) -> ToolOutput:
        if args:
            raise TypeError(f"tool {self.offer.name!r} takes its arguments by name")
        context = arguments.pop(_CONTEXT, None)
        if isinstance(context, Context):
            result = await self.offer.told(arguments, partial(_write, context, self.offer.name))
        else:
            result = await self.offer.call(arguments)
        return _output(self.offer, arguments, result)


def export(offered: Callable[[], list[Offer]]) -> list[FunctionTool]:
    return [ToolcribTool(offer) for offer in offered()]


def _metadata(offer: Offer) -> ToolMetadata:
    return ToolMetadata(
        name=offer.name,
        description=offer.short_description,
        fn_schema=_model(offer.name, offer.parameters),
        return_direct=offer.spec.is_terminal,
    )


class _Schema(BaseModel):
    """A model that says it has the schema of the tool's parameters; LlamaIndex asks it for no more."""


def _model(name: str, parameters: JsonSchema) -> type[BaseModel]:
    def model_json_schema(cls: type[BaseModel], *args: Any, **options: Any) -> JsonSchema:  # noqa: ARG001
        return parameters

    model = create_model(name, __base__=_Schema)
    model.model_json_schema = classmethod(model_json_schema)  # type: ignore[method-assign,assignment]
    return model


def _output(offer: Offer, arguments: dict[str, Any], result: ToolResult) -> ToolOutput:
    name = offer.spec.name
    blocks: list[ContentBlock]
    if not result.success:
        blocks = [TextBlock(text=failure_text(result))]
    elif parts := media_of(result):
        blocks = [_block(part, name) for part in parts]
    else:
        blocks = [TextBlock(text=text_of(result, name, [], _NAME))]
    return ToolOutput(
        blocks=blocks,
        tool_name=offer.name,
        raw_input={"args": (), "kwargs": arguments},
        raw_output=as_json(result.data) if result.success else result.error,
        is_error=not result.success,
    )


def _block(part: Part, name: str) -> ContentBlock:
    match part:
        case Image(data, media_type):
            return ImageBlock(image=_encoded(data), image_mimetype=media_type)
        case Audio(data, media_type):
            kind = media_type.partition("/")[2]  # audio/mpeg is mp3 for it and for its models
            return AudioBlock(audio=_encoded(data), format="mp3" if kind == "mpeg" else kind)
        case File(data, media_type, filename):
            return DocumentBlock(data=_encoded(data), document_mimetype=media_type, title=filename or None)
    return TextBlock(text=part_text(part, name, [], _NAME))


def _encoded(data: bytes) -> bytes:
    """A block takes bytes that could be base64 for base64."""
    return base64_of(data).encode()


async def _write(context: Context[Any], tool: str, event: ToolEvent) -> None:
    context.write_event_to_stream(
        ToolProgressEvent(
            tool_name=tool, kind=event.kind, fraction=event.fraction, message=event.message, item=as_json(event.item)
        )
    )


# The other way


def adopt(tools: Iterable[Any]) -> list[Tool]:
    return [_adopted(each) for each in tools]


def _adopted(given: Any) -> Tool:
    if not isinstance(given, BaseTool):
        raise is_no_tool(given, _NAME, "give its FunctionTool.from_defaults(function)")
    metadata = given.metadata
    name = metadata.get_name()
    if isinstance(given, ToolcribTool):
        return taken_back(given.offer, name)
    if isinstance(given, FunctionTool) and given.requires_context:
        raise refused(name, _NAME, "wants the context of a workflow, which there is none of here")
    try:
        parameters = metadata.get_parameters_dict()
    except PydanticUserError as error:
        reason, _, _ = str(error).partition(";")
        raise refused(name, _NAME, f"has no schema: {reason}") from error
    blocks = isinstance(given, FunctionTool) and not iscoroutinefunction(given.real_fn)
    call = _blocking(name, given) if blocks else _awaiting(name, adapt_to_async_tool(given))
    return adopted(
        name,
        metadata.description,
        parameters,
        call,
        is_terminal=metadata.return_direct or None,
    )


def _awaiting(name: str, tool: AsyncBaseTool) -> Callable[..., Any]:
    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:  # noqa: ARG001
        return _value(name, await tool.acall(**arguments))

    return call


def _blocking(name: str, tool: BaseTool) -> Callable[..., Any]:
    def call(arguments: dict[str, Any], context: ToolContext) -> Any:  # noqa: ARG001
        return _value(name, tool(**arguments))

    return call


def _value(name: str, output: ToolOutput) -> Any:
    if output.is_error:
        raise ToolFailedError(name, output.content or "it gave no reason")
    if any(not isinstance(block, TextBlock) for block in output.blocks):
        return [_part(block) for block in output.blocks]
    raw = output.raw_output
    if output.content != ("" if raw == [] else str(raw)):
        return output.content  # the tool, or its callback, has other words for models
    return raw if type(raw) in SIMPLE or isinstance(raw, list | BaseModel) else output.content


def _part(block: Any) -> Any:
    match block:
        case TextBlock(text=text):
            return text
        case ImageBlock(url=url) | AudioBlock(url=url) | DocumentBlock(url=url) if url is not None:
            return part_of_url(str(url))
        case ImageBlock(image_mimetype=media_type):
            return part_of(block.resolve_image().read(), media_type)
        case AudioBlock(format=kind):
            return part_of(block.resolve_audio().read(), f"audio/{kind}" if kind else None)
        case DocumentBlock(document_mimetype=media_type, title=title):
            return part_of(block.resolve_document().read(), media_type, title or "")
    return as_json(block)
