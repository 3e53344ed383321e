"""A film of a tab as Motion-JPEG in an AVI file: the browser sends JPEG frames, so nothing has to be encoded."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

FRAMES_PER_SECOND = 5
_LONGEST_STILL = 30 * FRAMES_PER_SECOND


class Film:
    """Collects frames with their times, and writes them at a steady rate when it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._frames: list[tuple[float, bytes]] = []
        self._size = (0, 0)

    def add(self, frame: Any) -> None:
        """A frame as the browser sends it: ``data`` (JPEG), ``timestamp`` in ms and the size of the viewport."""
        self._size = (int(frame["viewportWidth"]), int(frame["viewportHeight"]))
        self._frames.append((float(frame["timestamp"]) / 1000, bytes(frame["data"])))

    def close(self) -> Path | None:
        """The file, or None if no frame ever came."""
        if not self._frames:
            return None
        self._path.write_bytes(_avi(self._steady(), *self._size))
        return self._path

    def _steady(self) -> list[bytes]:
        """Each frame as often as it stood; a long stand-still is cut short."""
        steady: list[bytes] = []
        times = [time for time, _ in self._frames[1:]] + [self._frames[-1][0] + 1]
        for (start, data), end in zip(self._frames, times, strict=True):
            count = round((end - start) * FRAMES_PER_SECOND)
            steady += [data] * max(1, min(count, _LONGEST_STILL))
        return steady


def _avi(frames: list[bytes], width: int, height: int) -> bytes:
    chunks = [_chunk(b"00dc", frame) for frame in frames]
    offset, index = 4, b""
    for chunk, frame in zip(chunks, frames, strict=True):
        index += struct.pack("<4sIII", b"00dc", 0x10, offset, len(frame))
        offset += len(chunk)
    largest = max(map(len, frames))
    main = struct.pack(
        "<14I", 1_000_000 // FRAMES_PER_SECOND, largest * FRAMES_PER_SECOND, 0, 0x10, len(frames), 0, 1, largest,
        width, height, 0, 0, 0, 0,
    )  # fmt: skip
    stream = struct.pack(
        "<4s4sIHHIIIIIIII4H", b"vids", b"MJPG", 0, 0, 0, 0, 1, FRAMES_PER_SECOND, 0, len(frames), largest, 0xFFFFFFFF,
        0, 0, 0, width, height,
    )  # fmt: skip
    picture = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", width * height * 3, 0, 0, 0, 0)
    headers = _list(b"hdrl", _chunk(b"avih", main) + _list(b"strl", _chunk(b"strh", stream) + _chunk(b"strf", picture)))
    body = b"AVI " + headers + _list(b"movi", b"".join(chunks)) + _chunk(b"idx1", index)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _list(name: bytes, data: bytes) -> bytes:
    return _chunk(b"LIST", name + data)
