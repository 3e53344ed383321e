"""``multipart/form-data``: one file, written to disk while it comes in and never held in memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import IO

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from toolcrib.bootstrap import make_folder, try_writing
from toolcrib.calling.blocking import WRITES, in_thread
from toolcrib.core.errors import InvalidBundleError, StoreError, disk_error
from toolcrib.surfaces.http.bodies import pieces, take_upload

FIELD = "file"
PREFIX = "upload-"
_MAX_PARTS = 10
_MAX_HEADER_BYTES = 8_192
_BUFFER_BYTES = 1 << 20


class _Form:
    """Collects the part called ``file`` and skips the others."""

    def __init__(self, boundary: bytes) -> None:
        self.found = False
        self.complete = False
        self.pending = bytearray()
        self._parts = 0
        self._name = b""
        self._value = b""
        self._disposition = b""
        self._taking = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._data,
                "on_end": self._end,
            },
        )

    def feed(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise InvalidBundleError(f"the upload is not valid multipart/form-data: {str(error)[:200]}") from None

    def close(self) -> None:
        """Let go of the parser, which holds this form: nothing else would before the garbage collector comes."""
        del self._parser

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise InvalidBundleError(f"the upload has more than {_MAX_PARTS} parts; it needs one, called {FIELD!r}")
        self._disposition = b""
        self._taking = False

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._name = self._bounded(self._name + data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value = self._bounded(self._value + data[start:end])

    def _header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._taking = options.get(b"name") == FIELD.encode()
        if self._taking and self.found:
            raise InvalidBundleError(f"the upload has two parts called {FIELD!r}; send one bundle at a time")
        self.found = self.found or self._taking

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._taking:
            self.pending += data[start:end]

    def _end(self) -> None:
        self.complete = True

    @staticmethod
    def _bounded(header: bytes) -> bytes:
        if len(header) > _MAX_HEADER_BYTES:
            raise InvalidBundleError(f"a header of the upload is longer than {_MAX_HEADER_BYTES} bytes")
        return header


@asynccontextmanager
async def uploaded_file(request: Request, folder: Path) -> AsyncIterator[Path]:
    """Where the uploaded file is. It is gone afterwards, whatever happened."""
    form = _Form(_boundary(request))
    with _temporary(folder) as file:
        take_upload(request)
        with closing(form):
            async for piece in pieces(request):
                form.feed(piece)
                if len(form.pending) >= _BUFFER_BYTES:
                    await in_thread(WRITES, _flush, form, file)
        await in_thread(WRITES, _flush, form, file)
        if not form.found:
            raise InvalidBundleError(f"the upload has no part called {FIELD!r}; send the bundle as 'file=@bundle.zip'")
        if not form.complete:
            raise InvalidBundleError("the upload ends in the middle; send it again")
        yield Path(file.name)


def discard_leftovers(folder: Path, *, older_than: float = 0.0) -> None:
    """Remove what a crash left of uploads. Without an age, call it while nobody uploads to the folder."""
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime <= time.time() - older_than:
                path.unlink()


def check_spool(folder: Path) -> None:
    """Raises StoreError that says why uploads cannot be kept in the folder."""
    try:
        make_folder(folder)
        try_writing(folder)
    except OSError as error:
        raise _cannot_keep(folder, error) from None


def _temporary(folder: Path) -> IO[bytes]:
    """Without a buffer: what could not be written would be tried again when the file is closed."""
    try:
        make_folder(folder)
        return tempfile.NamedTemporaryFile(dir=folder, prefix=PREFIX, suffix=".zip", buffering=0)
    except OSError as error:
        raise _cannot_keep(folder, error) from None


def _flush(form: _Form, file: IO[bytes]) -> None:
    try:
        while form.pending:
            del form.pending[: file.write(form.pending)]
    except OSError as error:
        raise disk_error("the upload could not be written to disk", error) from None


def _cannot_keep(folder: Path, error: OSError) -> StoreError:
    return disk_error(f"uploads cannot be kept in {str(folder)!r}", error)


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary or len(boundary) > 200:
        raise InvalidBundleError(
            f"the upload is not 'multipart/form-data' with a boundary{_instead(kind)}; send the bundle in the part "
            f"{FIELD!r}, as 'curl -F {FIELD}=@bundle.zip' does"
        )
    return boundary


def _instead(kind: bytes) -> str:
    return f" but {kind.decode('latin-1')!r:.60}" if kind and kind != b"multipart/form-data" else ""
