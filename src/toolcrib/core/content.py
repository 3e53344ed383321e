"""What a result is made of: text, JSON, images, audio, files, links. Each format renders what its provider takes.

A tool returns them as they are, alone or in a list: ``return Image(png)``, ``return ["The chart:", Image(png)]``. Plain
bytes become what their first bytes say they are.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, PlainSerializer, PlainValidator, WithJsonSchema, model_serializer
from pydantic.dataclasses import dataclass

from toolcrib.core.errors import shown
from toolcrib.core.spec import ToolSpec


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        with suppress(ValueError):
            return base64.b64decode(value, validate=True)
    raise ValueError(f"data must be bytes or base64, not {shown(value)}; of a file that is Path(...).read_bytes()")


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


Data = Annotated[
    bytes,
    PlainValidator(_bytes_of),
    PlainSerializer(base64_of, return_type=str),
    WithJsonSchema({"type": "string", "contentEncoding": "base64"}),
]
_CONFIG = ConfigDict(extra="forbid", defer_build=True)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Text:
    text: str
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Json:
    """Any value that is not text; it is rendered as JSON."""

    value: Any
    type: Literal["json"] = field(default="json", init=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Image:
    data: Data
    media_type: str = "image/png"
    type: Literal["image"] = field(default="image", init=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Audio:
    data: Data
    media_type: str = "audio/wav"
    type: Literal["audio"] = field(default="audio", init=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class File:
    data: Data
    media_type: str = "application/octet-stream"
    name: str = ""
    type: Literal["file"] = field(default="file", init=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Link:
    """Something that the reader may fetch by itself."""

    url: str
    title: str = ""
    media_type: str = ""
    type: Literal["link"] = field(default="link", init=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class ToolReferences:
    """Tools that a search found. As JSON it is its ``text``, which tells of them where a provider has no references."""

    tools: tuple[ToolSpec, ...] = field(repr=False)
    text: str
    type: Literal["tool_references"] = field(default="tool_references", init=False)

    @model_serializer
    def __str__(self) -> str:
        return self.text


Part = Text | Json | Image | Audio | File | Link | ToolReferences
_PARTS = (Text, Json, Image, Audio, File, Link, ToolReferences)
_NOT_JSON = (Image, Audio, File, Link, bytes, bytearray, memoryview)

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_AUDIO = {
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"\xff\xf2": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}
_FILES = {b"%PDF-": "application/pdf", b"PK\x03\x04": "application/zip", b"\x1f\x8b": "application/gzip"}


SIMPLE = frozenset({str, int, float, bool, dict, type(None)})
"""Types whose values are one part, text or JSON."""


def parts_of(value: Any) -> tuple[Part, ...]:
    """The parts that a tool's value stands for."""
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, list | tuple) and any(_is_media(item) or isinstance(item, _PARTS) for item in value):
        return tuple(part for item in value for part in parts_of(item))
    return (_part_of(value),)


def _part_of(value: Any) -> Part:
    if isinstance(value, _PARTS):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return media(bytes(value))
    if _is_media(value) and (png := _png_of(value)):
        return Image(png)
    return Json(value)


def _is_media(value: Any) -> bool:
    """Bytes, a part that is no JSON, or what shows itself as an image in a notebook, as pictures do."""
    if type(value) in SIMPLE:
        return False
    return isinstance(value, _NOT_JSON) or callable(getattr(type(value), "_repr_png_", None))


def _png_of(picture: Any) -> bytes | None:
    """What a picture shows of itself, if it can be drawn."""
    try:
        png = picture._repr_png_()
    except Exception:  # noqa: BLE001 - a stranger's object may raise anything when it is looked at
        return None
    return png if isinstance(png, bytes) else None


def media(data: bytes, name: str = "") -> Image | Audio | File:
    """Bytes as what their first bytes say they are."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Image(data, "image/webp")
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return Audio(data)
    if kind := _known(_IMAGES, data):
        return Image(data, kind)
    if kind := _known(_AUDIO, data):
        return Audio(data, kind)
    return File(data, _known(_FILES, data) or "application/octet-stream", name)


def part_of(data: bytes, media_type: str | None, name: str = "") -> Part:
    """Bytes as what their media type says they are, or else their first bytes."""
    kind, _, _ = (media_type or "").partition("/")
    if not media_type:
        return media(data, name)
    if kind == "image":
        return Image(data, media_type)
    return Audio(data, media_type) if kind == "audio" else File(data, media_type, name)


def part_of_base64(text: str, media_type: str | None, name: str = "") -> Part:
    return part_of(base64.b64decode(text), media_type, name)


def told_media(value: Any) -> Any:
    """Bytes and pictures, and those in a list, as what they are: nobody who reads them as JSON could tell."""
    if isinstance(value, list | tuple):
        return [told_media(item) for item in value] if any(map(_is_media, value)) else value
    if not _is_media(value):
        return value
    part = _part_of(value)
    return value if isinstance(part, Json) else part


def in_words(part: Image | Audio | File) -> str:
    """What stands for media where they cannot be shown."""
    return f"{part.type} of {len(part.data):,} bytes, {part.media_type}"


def without_media(value: Any) -> Any:
    """The value with words in the place of media, and of those in a list."""
    told = told_media(value)
    if isinstance(told, list | tuple) and any(map(_is_media, told)):
        return [without_media(item) for item in told]
    return f"[{in_words(told)}]" if isinstance(told, Image | Audio | File) else value


def _known(kinds: dict[bytes, str], data: bytes) -> str:
    return next((media_type for mark, media_type in kinds.items() if data.startswith(mark)), "")
