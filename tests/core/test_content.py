"""What a result is made of."""

import base64
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from toolcrib import Audio, File, Image, Link, ToolEvent, ToolResult
from toolcrib.core.content import Json, Text, media, parts_of, told_media, without_media
from toolcrib.core.json import as_json

PNG = b"\x89PNG\r\n\x1a\n\xff\xfe"


class Picture:
    """Shows itself as an image in a notebook, as pictures of other packages do."""

    def __init__(self, shown: bytes | Exception | None = PNG) -> None:
        self.shown = shown

    def _repr_png_(self) -> bytes | None:
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("text", [Text("text")]),
        ({"a": 1}, [Json({"a": 1})]),
        ([1, 2], [Json([1, 2])]),
        ([], [Json([])]),
        (None, [Json(None)]),
        (PNG, [Image(PNG)]),
        (bytearray(PNG), [Image(PNG)]),
        (Picture(), [Image(PNG)]),
        (["a", PNG, {"b": 1}], [Text("a"), Image(PNG), Json({"b": 1})]),
        ((Link("https://example.org"), [PNG, "c"]), [Link("https://example.org"), Image(PNG), Text("c")]),
        (Audio(b"x", "audio/ogg"), [Audio(b"x", "audio/ogg")]),
    ],
)
def test_the_parts_of_what_a_tool_returns(value: Any, parts: list[Any]) -> None:
    assert list(parts_of(value)) == parts


@pytest.mark.parametrize(
    ("data", "kind", "media_type"),
    [
        (PNG, Image, "image/png"),
        (b"\xff\xd8\xff\xe0", Image, "image/jpeg"),
        (b"GIF89a...", Image, "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", Image, "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", Audio, "audio/wav"),
        (b"ID3\x04", Audio, "audio/mpeg"),
        (b"\xff\xf3\x84\xc4", Audio, "audio/mpeg"),
        (b"OggS\0", Audio, "audio/ogg"),
        (b"%PDF-1.7", File, "application/pdf"),
        (b"PK\x03\x04", File, "application/zip"),
        (b"\0\1\2", File, "application/octet-stream"),
        (b"", File, "application/octet-stream"),
    ],
)
def test_bytes_are_what_their_first_bytes_say(data: bytes, kind: type, media_type: str) -> None:
    known = media(data)
    assert (type(known), known.media_type, known.data) == (kind, media_type, data)


def test_a_part_as_json_has_its_kind_and_base64_that_everybody_reads() -> None:
    as_sent = as_json({"shown": Image(PNG)})["shown"]
    assert as_sent == {"type": "image", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert Image(as_sent["data"]) == Image(PNG)


def test_parts_survive_the_way_to_another_process() -> None:
    parts = (Image(PNG), Audio(b"a"), File(b"f", "text/plain", "f.txt"), Link("https://example.org"), Text("t"))
    assert pickle.loads(pickle.dumps(parts)) == parts


@pytest.mark.parametrize("data", [3, None, "not base64!", "chart.png", Path("chart.png"), ["x"]])
def test_what_is_no_data_is_refused_with_the_way_out(data: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        Image(data)
    assert f"data must be bytes or base64, not {data!r}; of a file that is Path(...).read_bytes()" in str(caught.value)


@pytest.mark.parametrize("cannot", [None, OSError("no encoder")])
def test_a_picture_that_cannot_be_drawn_is_a_value_as_any_other(cannot: Any) -> None:
    picture = Picture(cannot)
    assert parts_of(picture) == (Json(picture),)
    assert parts_of(["a", picture]) == (Text("a"), Json(picture))
    assert told_media(picture) is picture


@pytest.mark.parametrize("media", [PNG, Picture(), Image(PNG)])
def test_who_reads_json_is_told_what_media_are(media: Any) -> None:
    image = {"type": "image", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    for value, told in ((media, image), (["a", media], ["a", image])):
        assert ToolResult(True, value).to_json()["data"] == told
        assert ToolEvent("item", item=value).to_json()["item"] == told


def test_words_stand_for_media_where_they_cannot_be_shown() -> None:
    assert without_media(["a", PNG, [File(b"x"), 1]]) == [
        "a", "[image of 10 bytes, image/png]", ["[file of 1 bytes, application/octet-stream]", 1],
    ]  # fmt: skip
    assert without_media(Picture()) == "[image of 10 bytes, image/png]"
    assert without_media({"a": 1}) == {"a": 1} and without_media(link := Link("https://example.org")) is link
