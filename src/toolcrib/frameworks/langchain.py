"""LangChain: a registry's tools as its StructuredTools, and its tools as ours."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, ValidationError

from toolcrib.calling.sync import run_sync
from toolcrib.core.content import Audio, File, Image, Part, base64_of, part_of_base64
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolFailedError
from toolcrib.core.json import as_json, as_text
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.formats.openai import text_of
from toolcrib.formats.provider import part_text
from toolcrib.formats.schemas import object_schema
from toolcrib.frameworks.adopted import (
    adopted,
    is_no_tool,
    part_of_url,
    refused,
    taken_back,
    wrong_arguments,
)
from toolcrib.frameworks.offer import Execute, Offer, failure_text, media_of

_NAME = "LangChain"
Answer = Callable[[Any, str | None], Coroutine[Any, Any, Any]]
"""Answers a call with these arguments, under this id if a model made it."""


class ToolcribTool(StructuredTool):
    """Hands the arguments over as they came, for the tool checks them itself; they may have any name."""

    offer: Any = Field(default=None, exclude=True, repr=False)
    """The Offer that it was made of, if a registry handed it out."""

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tool_input, tool_call_id), {}

    def _run(self, arguments: Any, call_id: str | None = None) -> Any:  # type: ignore[override]
        return run_sync(self._arun(arguments, call_id))

    async def _arun(self, arguments: Any, call_id: str | None = None) -> Any:  # type: ignore[override]
        assert self.coroutine is not None
        return await self.coroutine(arguments, call_id)


def export(offered: Callable[[], list[Offer]]) -> list[StructuredTool]:
    """A failure is told to the model, as LangChain's own tools do with ``handle_tool_error``."""
    return [
        ToolcribTool(
            name=offer.name,
            description=offer.spec.description,
            args_schema=offer.parameters,
            coroutine=_answering(offer),
            tags=list(offer.spec.tags) or None,
            return_direct=offer.spec.is_terminal,
            handle_tool_error=True,
            offer=offer,
        )
        for offer in offered()
    ]


def structured_tool(tool: Tool, execute: Execute | None = None) -> StructuredTool:
    """See :func:`toolcrib.frameworks.to_structured_tool`."""
    run: Execute = execute or tool.execute

    async def answer(arguments: dict[str, Any], call_id: str | None) -> Any:
        outcome = await run(arguments)
        result = outcome if isinstance(outcome, ToolResult) else ToolResult(True, outcome)
        if not result.success:
            raise result.to_error()
        return _content(result, call_id, tool.name)

    spec = tool.spec
    return ToolcribTool(
        name=spec.name,
        description=spec.description,
        args_schema=object_schema(spec, [], _NAME),
        coroutine=answer,
        tags=list(spec.tags) or None,
        return_direct=spec.is_terminal,
    )


def _answering(offer: Offer) -> Answer:
    async def answer(arguments: Any, call_id: str | None) -> Any:
        config = ensure_config()
        callbacks = config.get("callbacks")
        if getattr(callbacks, "handlers", callbacks):
            result = await offer.told(arguments, partial(_dispatch, offer.name, config), call_id)
        else:
            result = await offer.call(arguments, call_id)
        if not result.success:
            raise ToolException(failure_text(result))
        return _content(result, call_id, offer.spec.name)

    return answer


async def _dispatch(tool: str, config: RunnableConfig, event: ToolEvent) -> None:
    """To the callbacks of the run: ``on_custom_event`` and ``astream_events``."""
    data = {"tool": tool, **event.to_json()}
    await adispatch_custom_event(f"tool_{data.pop('kind')}", data, config=config)


def _content(result: ToolResult, call_id: str | None, name: str) -> Any:
    """The content of a model's message; for who called without one, the value itself."""
    if call_id is None:
        return result.data
    if parts := media_of(result):
        return [_block(part, name) for part in parts]
    return text_of(result, name, [], _NAME)


def _block(part: Part, name: str) -> dict[str, Any]:
    match part:
        case Image(data, media_type):
            return {"type": "image", "base64": base64_of(data), "mime_type": media_type}
        case File(data, media_type) | Audio(data, media_type):  # it knows no audio in the message of a tool
            named = {"filename": part.name} if isinstance(part, File) and part.name else {}
            return {"type": "file", "base64": base64_of(data), "mime_type": media_type, **named}
    return {"type": "text", "text": part_text(part, name, [], _NAME)}


# The other way


def adopt(tools: Iterable[Any]) -> list[Tool]:
    return [_adopted(each) for each in tools]


def _adopted(given: Any) -> Tool:
    if isinstance(given, ToolcribTool) and given.offer is not None:
        return taken_back(given.offer, given.name)
    if not isinstance(given, BaseTool):
        raise is_no_tool(given, _NAME, "put @tool of langchain_core.tools on a function")
    if wanted := _injected(given):
        raise refused(given.name, _NAME, f"wants {wanted} from a run of LangChain, which there is none of here")
    # What goes wrong is to be raised, not told as if it were the answer.
    raising = given.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})
    runs_async = getattr(given, "coroutine", None) is not None or (
        type(given)._arun not in _SYNC  # noqa: SLF001 - nothing else tells whether it is one that waits
    )
    make = _awaiting if runs_async else _blocking
    return adopted(
        given.name,
        given.description,
        _parameters(given),
        make(raising, given),
        tags=list(given.tags or ()),
        is_terminal=given.return_direct or None,
    )


def _parameters(tool: BaseTool) -> dict[str, Any]:
    """As models are told them. A schema that is no model's is all that checks them, so it stays as it is."""
    if isinstance(tool.args_schema, dict):
        return tool.args_schema
    parameters: dict[str, Any] = convert_to_openai_tool(tool)["function"]["parameters"]
    return parameters


_SYNC = frozenset({BaseTool._arun, StructuredTool._arun})  # noqa: SLF001


def _injected(tool: BaseTool) -> str:
    """What LangChain would fill in: the parameters that it hides from models."""
    hidden = set(getattr(tool, "_injected_args_keys", ()))
    schema, shown = tool.get_input_schema(), tool.tool_call_schema
    if not isinstance(tool.args_schema, dict) and isinstance(shown, type) and issubclass(shown, BaseModel):
        hidden |= set(getattr(schema, "model_fields", ())) - set(shown.model_fields)
    return " and ".join(sorted(map(repr, hidden)))


def _awaiting(raising: BaseTool, given: BaseTool) -> Callable[..., Any]:
    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:  # noqa: ARG001
        config = ensure_config()
        try:
            output = await raising.arun(arguments, config=config, callbacks=config.get("callbacks"))
            return _value(output, given.name)
        except (ToolException, ValidationError) as error:
            raise _failure(error, given) from error

    return call


def _blocking(raising: BaseTool, given: BaseTool) -> Callable[..., Any]:
    def call(arguments: dict[str, Any], context: ToolContext) -> Any:  # noqa: ARG001
        config = ensure_config()
        try:
            output = raising.run(arguments, config=config, callbacks=config.get("callbacks"))
            return _value(output, given.name)
        except (ToolException, ValidationError) as error:
            raise _failure(error, given) from error

    return call


def _failure(error: ToolException | ValidationError, tool: BaseTool) -> Exception:
    if isinstance(error, ValidationError):
        return wrong_arguments(tool.name, error) if error.title == _title(tool.args_schema) else error
    flag = tool.handle_tool_error
    told = flag(error) if callable(flag) else flag if isinstance(flag, str) else str(error)
    return ToolFailedError(tool.name, as_text(told), cause_type=type(error).__name__)


def _title(schema: Any) -> str | None:
    """Under which pydantic complains of arguments, and not of something that the tool itself has checked."""
    return (schema.model_config.get("title") or schema.__name__) if hasattr(schema, "model_config") else None


def _value(output: Any, name: str) -> Any:
    content = output.content if isinstance(output, ToolMessage) else output
    if isinstance(output, ToolMessage) and output.status == "error":
        raise ToolFailedError(name, as_text(content))
    if isinstance(content, list) and any(isinstance(each, dict) and each.get("type") in _MEDIA for each in content):
        return [_part(each) for each in content]
    return content


_MEDIA = frozenset({"audio", "file", "image", "image_url"})


def _part(block: Any) -> Any:
    """A part of ours, if it is a block of content that carries something."""
    if not isinstance(block, dict):
        return block
    if block.get("type") == "text":
        return block.get("text")
    if block.get("type") in _MEDIA:
        if base64 := block.get("base64") or block.get("data"):
            return part_of_base64(base64, block.get("mime_type"), block.get("filename") or "")
        url = block.get("url") or block.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        if isinstance(url, str):
            return part_of_url(url)
    return as_json(block)
