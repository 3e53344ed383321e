"""Results that are too long for a model: it reads the beginning, and the rest with a tool.

A result over the limit is kept for a while, within bounds, for the principal that called; what the model is given
instead names a handle for it, which nobody can guess.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NoReturn

from pydantic import Field

from toolcrib.calling.remembered import Remembered
from toolcrib.core.content import SIMPLE, Audio, File, Image, Json, Part, Text, ToolReferences, in_words, parts_of
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolValidationError, shown
from toolcrib.core.excerpts import Outline, Shortened, beginning, outline
from toolcrib.core.json import as_text, pointer_keys, pointer_to, read_json, walk
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define import tool
from toolcrib.formats.naming import READ_RESULT
from toolcrib.formats.provider import part_text

KEPT_SECONDS = 3600.0
MOST_KEPT = 1000
MOST_KEPT_BYTES = 64_000_000
LONGEST_KEPT = 5_000_000
"""Characters of one result. To look into JSON it is parsed in one step, for which everybody else waits."""
_LONGEST_HANDLE, _LONGEST_POINTER, _LONGEST_TOLD = 64, 1000, 300
_MOST_KEYS_TOLD = 20


def takes_all(part: Part) -> bool:  # noqa: ARG001
    """Of who renders every part by itself."""
    return True


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a model is given of a long result. ``value`` is the same for programs: of the result's own shape."""

    result: ToolResult
    value: Any


@dataclass(frozen=True, slots=True)
class _Kept:
    text: str
    is_json: bool
    page: int
    """So many characters of it are read at once."""


class ResultReader(Tool):
    """The tool that reads what one :class:`LargeResults` has kept."""

    __slots__ = ()


class LargeResults:
    """Shortens results of more than ``most`` characters, or of more than a tool's own ``max_result_characters``.

    ``reader`` is the tool that reads what was left out; it must be among those that the model may call.
    """

    def __init__(self, most: int | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        if most is not None and (type(most) is not int or most < 1):
            raise ToolValidationError(f"max_result_characters must be a whole number above 0, not {most!r:.60}")
        self.most = most
        self.reader = self._reader()
        self._kept: Remembered[tuple[str, str], _Kept] = Remembered(MOST_KEPT, weight=MOST_KEPT_BYTES, clock=clock)

    def __len__(self) -> int:
        """How many results are kept."""
        return len(self._kept)

    def limit_of(self, spec: ToolSpec | None) -> int | None:
        """The tool's own limit if it has one: who wrote it knows what is in its results."""
        if spec is None or spec.max_result_characters is None:
            return self.most
        return None if spec.name == READ_RESULT else spec.max_result_characters

    def shortened(
        self, result: ToolResult, tools: Mapping[str, Tool], context: ToolContext, takes: Callable[[Part], bool]
    ) -> ToolResult:
        """The result as a model is given it; ``takes`` says which media its provider does not get as base64.

        ``tools`` are those of whom one ran; which one, the result knows.
        """
        ran = tools.get(result.metadata.get("tool", ""))
        excerpt = self.excerpt(result, None if ran is None else ran.spec, context, takes)
        return result if excerpt is None else excerpt.result

    def excerpt(
        self, result: ToolResult, spec: ToolSpec | None, context: ToolContext, takes: Callable[[Part], bool]
    ) -> Excerpt | None:
        """None if the result is short enough. Media count only if they would be sent as text."""
        limit = self.limit_of(spec)
        if limit is None or (spec is not None and spec.name == READ_RESULT):
            return None  # what reads results keeps to their limits
        data = result.data if result.success else result.error
        if isinstance(data, str):
            return self._of_text(result, data, limit, context) if len(data) > limit else None
        if (type(data) in SIMPLE and type(data) is not dict) or isinstance(data, ToolReferences):
            return None
        parts = parts_of(data)
        if len(parts) == 1 and isinstance(parts[0], Json):
            value = parts[0].value
            if not isinstance(value, str):
                return self._of_json(result, as_text(value), limit, context)
            return self._of_text(result, value, limit, context) if len(value) > limit else None
        return self._of_parts(result, parts, limit, context, takes)

    def _of_text(self, result: ToolResult, text: str, limit: int, context: ToolContext) -> Excerpt:
        start = beginning(text, limit)
        handle = self._keep(_Kept(text, is_json=False, page=limit), context)
        note = _more(len(text), "this is the beginning", _call(handle, offset=len(start)))
        return _excerpt(result, f"{start}\n\n{note}", start, handle, len(text))

    def _of_json(self, result: ToolResult, text: str, limit: int, context: ToolContext) -> Excerpt | None:
        if len(text) <= limit:
            return None
        handle = self._keep(_Kept(text, is_json=True, page=limit), context)
        made = outline(read_json(text), limit)
        told = _told(made)
        note = _more(len(text), _said(told), _call(handle, offset=0, pointer=_example(told), or_all=True))
        return _excerpt(result, f"{as_text(made.value)}\n\n{note}", made.value, handle, len(text))

    def _of_parts(
        self,
        result: ToolResult,
        parts: Sequence[Part],
        limit: int,
        context: ToolContext,
        takes: Callable[[Part], bool],
    ) -> Excerpt | None:
        """Media stay where they are, and the texts between them are one text."""
        told = [_instead(part) if _is_too_large(part, limit, takes) else part for part in parts]
        words = [part_text(part, "", [], "") for part in told if not isinstance(part, Image | Audio | File)]
        media = [part for part in told if isinstance(part, Image | Audio | File)]
        text = "\n".join(words)
        if len(text) > limit:
            excerpt = self._of_text(result, text, limit, context)
            data = [Text(excerpt.result.data), *media]
            return Excerpt(replace(excerpt.result, data=data), [excerpt.value, *media])
        return None if told == list(parts) else Excerpt(replace(result, data=told), None)

    def _keep(self, kept: _Kept, context: ToolContext) -> str:
        """Its handle; empty if it is too long to be kept."""
        if len(kept.text) > LONGEST_KEPT:
            return ""
        handle = secrets.token_urlsafe(16)
        weight = len(kept.text) * (1 if kept.text.isascii() else 4)
        self._kept.put((context.principal, handle), kept, seconds=KEPT_SECONDS, weight=weight)
        return handle

    def _reader(self) -> ResultReader:
        @tool(name=READ_RESULT, cacheable=False)
        async def read_result(
            handle: Annotated[str, Field(max_length=_LONGEST_HANDLE, description="The handle as it was given.")],
            context: ToolContext,
            offset: Annotated[int, Field(ge=0, description="Where in the text to begin, counted in characters.")] = 0,
            pointer: Annotated[
                str,
                Field(
                    max_length=_LONGEST_POINTER,
                    description="A part of a JSON result, as a JSON pointer such as /rows/10.",
                ),
            ] = "",
        ) -> Any:
            """Read more of a result that was too long to be given whole: the text from an offset on, or a part of it.

            Give the handle that stands at the end of the shortened result.
            """
            return self._read(handle, offset, pointer, context)

        return ResultReader(
            read_result.spec, read_result.function, read_result.runner,
            context_parameter=read_result.context_parameter, decode=read_result.decode,
        )  # fmt: skip

    def _read(self, handle: str, offset: int, pointer: str, context: ToolContext) -> Any:
        kept = self._kept.get((context.principal, handle))
        if kept is None:
            raise InvalidArgumentsError(
                f"no result is kept under the handle {shown(handle)}: they are kept for a while only; "
                "call the tool that gave it again",
                tool=READ_RESULT,
                argument="handle",
            )
        if not pointer:
            return _page(kept.text, offset, kept.page, handle)
        value = _part(kept, pointer)
        text = as_text(value)
        if len(text) <= kept.page and not offset:
            return value
        if offset or isinstance(value, str):
            return _page(text, offset, kept.page, handle, pointer)
        made = outline(value, kept.page)
        told = _told(made, pointer)
        if not (example := _example(told, pointer)):
            return _page(text, 0, kept.page, handle, pointer)
        note = _more(len(text), _said(told), _call(handle, offset=0, pointer=example), "part")
        return f"{as_text(made.value)}\n\n{note}"


def _excerpt(result: ToolResult, text: str, value: Any, handle: str, characters: int) -> Excerpt:
    metadata = {**result.metadata, "large_result": {"handle": handle, "characters": characters}}
    if result.success:
        return Excerpt(replace(result, data=text, metadata=metadata), value)
    return Excerpt(replace(result, error=text, metadata=metadata), None)


def _page(text: str, offset: int, page: int, handle: str, pointer: str = "") -> str:
    what = "part" if pointer else "result"
    if offset and offset >= len(text):
        raise InvalidArgumentsError(
            f"the offset {shown(offset)} lies beyond the end: the {what} has {len(text):,} characters",
            tool=READ_RESULT,
            argument="offset",
        )
    taken = beginning(text[offset : offset + page + 1], page)
    end = offset + len(taken)
    if end >= len(text):
        return f"{taken}\n\n[This is the end of the {what}.]" if offset else taken
    where = f"these are {offset:,} to {end:,}"
    return f"{taken}\n\n{_more(len(text), where, _call(handle, offset=end, pointer=pointer), what)}"


def _part(kept: _Kept, pointer: str) -> Any:
    if not kept.is_json:
        _refuse_pointer("the result is text and no JSON; read it with an offset")
    if not pointer.startswith("/"):
        _refuse_pointer(f"{shown(pointer)} is no JSON pointer: one begins with a slash, as /rows/10 does")
    keys = pointer_keys(pointer)
    value, followed = walk(read_json(kept.text), keys)
    if followed < len(keys):
        reached = pointer_to(*keys[:followed])
        where = f"{shown(reached)} is there and" if reached else "the result"
        _refuse_pointer(f"there is nothing at {shown(pointer)}; {where} {_holds(value)}")
    return value


def _holds(value: Any) -> str:
    """What can be asked for below a value."""
    if isinstance(value, dict) and value:
        some = ", ".join(map(shown, list(value)[:_MOST_KEYS_TOLD]))
        return f"has the keys {some}" + (f" and {len(value) - _MOST_KEYS_TOLD:,} more" * (len(value) > _MOST_KEYS_TOLD))
    if isinstance(value, list) and value:
        return f"has the items 0 to {len(value) - 1}"
    return "has no parts"


def _refuse_pointer(message: str) -> NoReturn:
    raise InvalidArgumentsError(message, tool=READ_RESULT, argument="pointer")


def _more(characters: int, what: str, call: str, whole: str = "result") -> str:
    return f"[The {whole} has {characters:,} characters; {what}. {call}]"


def _call(handle: str, *, offset: int, pointer: str = "", or_all: bool = False) -> str:
    if not handle:
        return "It is too long to be kept; call the tool again in a way that gives less."
    where = [f"offset={offset}"] if offset or not pointer else []
    where += [f"pointer={json.dumps(pointer, ensure_ascii=False)}"] if pointer else []
    instead = ", or all of it as text with offset=0" if pointer and or_all else ""
    return f'Read more with {READ_RESULT}(handle="{handle}", {", ".join(where)}){instead}.'


def _told(made: Outline, below: str = "") -> list[Shortened]:
    """What is not shown of a part, as seen from the whole; not what lies too deep to be told in a few words."""
    seen = [replace(one, path=(*pointer_keys(below), *one.path)) for one in made.shortened]
    return [one for one in seen if len(one.pointer) <= _LONGEST_TOLD]


def _said(shortened: Sequence[Shortened]) -> str:
    said = "; ".join(map(str, shortened))
    return f"above is an outline of it: {said}" if said else "above is an outline of it"


def _example(shortened: Sequence[Shortened], below: str = "") -> str:
    """The pointer of something that was left out; empty if none leads further than the one that was read."""
    return next((one.next_pointer for one in shortened if one.next_pointer != below), "")


def _is_too_large(part: Part, limit: int, takes: Callable[[Part], bool]) -> bool:
    """Whether it would fill the model's context as base64."""
    return isinstance(part, Image | Audio | File) and len(part.data) * 4 // 3 > limit and not takes(part)


def _instead(part: Part) -> Part:
    assert isinstance(part, Image | Audio | File)
    return Text(f"[{in_words(part)}: it cannot be shown here]")
