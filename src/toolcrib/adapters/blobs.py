"""Blobs through obstore: a folder, an S3 bucket (AWS, Ceph, any other), or memory.

file:///var/lib/toolcrib/blobs
s3://bucket/prefix?endpoint=http://ceph.internal:7480&region=default&public_endpoint=https://files.example.org
memory:
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, urlsplit

from toolcrib.adapters.files import folder_path, make_folder, narrow, sync, try_writing
from toolcrib.core.errors import (
    MissingDependencyError,
    SettingsError,
    StorageFullError,
    StorageMissingError,
    StorageRefusedError,
    StoreError,
    disk_error,
)
from toolcrib.ports import Blobs

try:
    import obstore
    from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
    from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store
except ImportError as error:
    raise MissingDependencyError("obstore", extra="s3") from error

_KEY = re.compile(r"[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,128}){0,7}")
_PART_BYTES = 8 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
_STAGING = ".incoming"
_MISSING = (NotFoundError, FileNotFoundError)
_REFUSED = (PermissionDeniedError, UnauthenticatedError, PermissionError)
_NO_BUCKET = "<Code>NoSuchBucket</Code>"
_NO_ROOM = re.compile(r"os error (28|122)\b|<Code>\w*(QuotaExceeded|InsufficientStorage|StorageFull)\w*</Code>|\b507\b")
_PROBE = ".ping"
"""No blob has this key: it is written to see that blobs can be, over and over, and never listed."""
_S3_OPTIONS = frozenset({"endpoint", "region", "public_endpoint"})


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """Without a key obstore looks where AWS tools look: environment, web identity, instance role."""

    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


def open_blobs(url: str, credentials: S3Credentials | None = None) -> Blobs:
    """The blobs at ``url``; SettingsError if it is no address of blobs."""
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return ObjectBlobs(MemoryStore(), url)
    if parts.scheme == "file":
        return FolderBlobs(folder_path(url))
    if parts.scheme == "s3":
        return _open_s3(url, credentials or S3Credentials())
    raise SettingsError(f"{url!r} is not an address of blobs; use file:///path, s3://bucket?endpoint=... or memory:")


class ObjectBlobs:
    """Any object store. A second ``put`` of a key writes it again, so it proves that the bytes are there."""

    remote = False

    def __init__(self, store: ObjectStore, where: str) -> None:
        self._store = store
        self._where = where

    def put(self, key: str, source: BinaryIO) -> None:
        with self._complaints():
            obstore.put(self._store, _checked(key), source, chunk_size=_PART_BYTES, max_concurrency=2)

    def open(self, key: str) -> Iterator[bytes] | None:
        with self._complaints():
            try:
                found = obstore.get(self._store, _checked(key))
            except _MISSING as error:
                if _NO_BUCKET in str(error):
                    raise
                return None
        return self._pieces(found)

    def holds(self, key: str) -> bool:
        with self._complaints():
            try:
                obstore.head(self._store, _checked(key))
            except _MISSING:
                return False
        return True

    def copy(self, key: str, to: str) -> bool:
        with self._complaints():
            try:
                obstore.copy(self._store, _checked(key), _checked(to))
            except _MISSING:
                return False
        return True

    def move(self, key: str, to: str) -> bool:
        moved = self.copy(key, to)
        if moved:
            self.delete(key)
        return moved

    def link(self, key: str, *, seconds: int = 3600) -> str | None:  # noqa: ARG002 - nobody else can read our memory
        return None

    def delete(self, key: str) -> None:
        with self._complaints(), contextlib.suppress(*_MISSING):
            obstore.delete(self._store, _checked(key))

    def keys(self, folder: str = "") -> Iterator[tuple[str, float]]:
        with self._complaints():
            for batch in obstore.list(self._store, _checked(folder) if folder else None):
                for entry in batch:
                    if entry["path"] != _PROBE:
                        yield entry["path"], entry["last_modified"].timestamp()

    def ping(self) -> None:
        self.open(_PROBE)  # some servers make a missing bucket when something is put there
        self.put(_PROBE, io.BytesIO(b"ping"))

    def _pieces(self, found: obstore.GetResult) -> Iterator[bytes]:
        with self._complaints():
            for piece in found.stream():
                yield bytes(piece)

    @contextlib.contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise _complaint(self._where, error) from error


def _complaint(where: str, error: Exception) -> StoreError:
    if isinstance(error, OSError) and error.errno is not None:  # obstore has some without a number
        return disk_error(f"the blob store at {where!r} failed", error)
    text = str(error)
    if _NO_BUCKET in text:
        return StorageMissingError(
            f"the bucket of {where!r} does not exist; create it, or name another one in TOOLCRIB_BLOBS"
        )
    reason = text.partition("\n")[0]
    if _NO_ROOM.search(text):
        return StorageFullError(f"the blob store at {where!r} is full: {reason:.300}")
    if isinstance(error, _REFUSED):
        return StorageRefusedError(
            f"the blob store at {where!r} refuses our keys; check TOOLCRIB_S3_ACCESS_KEY_ID and "
            f"TOOLCRIB_S3_SECRET_ACCESS_KEY: {reason:.300}"
        )
    return StoreError(f"the blob store at {where!r} failed: {reason:.300}")


class FolderBlobs(ObjectBlobs):
    """A folder. A blob is on the disk, whole and under its name, when ``put`` returns, or it is not there at all.

    obstore renames without asking the disk, so a power cut could leave a short file under a final name.
    """

    def __init__(self, folder: Path) -> None:
        try:
            make_folder(folder)
            narrow(folder)
            super().__init__(LocalStore(folder), f"file://{folder}")
        except (OSError, BaseError) as error:
            raise StoreError(f"the folder {str(folder)!r} cannot hold blobs: {error}") from None
        self._folder = folder

    def put(self, key: str, source: BinaryIO) -> None:
        final = self._folder / _checked(key)
        staged = self._folder / _STAGING / uuid.uuid4().hex
        with self._complaints():
            make_folder(staged.parent)
            try:
                with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    shutil.copyfileobj(source, file, _PIECE_BYTES)
                    file.flush()
                    os.fsync(file.fileno())
                make_folder(final.parent)
                staged.replace(final)
            except BaseException:
                staged.unlink(missing_ok=True)
                raise
            self._sync_above(final)

    def copy(self, key: str, to: str) -> bool:
        with self._complaints():
            try:
                with (self._folder / _checked(key)).open("rb") as source:
                    self.put(to, source)
            except FileNotFoundError:
                return False
        return True

    def move(self, key: str, to: str) -> bool:
        source, target = self._folder / _checked(key), self._folder / _checked(to)
        with self._complaints():
            make_folder(target.parent)
            try:
                os.utime(source)  # before: what is renamed is at no moment older than it should be
                source.rename(target)
            except FileNotFoundError:
                return False
            self._sync_above(target)
            sync(source.parent)
        return True

    def keys(self, folder: str = "") -> Iterator[tuple[str, float]]:
        above = self._folder / _checked(folder) if folder else self._folder
        for parent, _, names in os.walk(above):
            for name in names:
                path = Path(parent, name)
                with contextlib.suppress(FileNotFoundError):  # gone since the folder was read
                    yield path.relative_to(self._folder).as_posix(), path.stat().st_mtime

    def ping(self) -> None:
        if not self._folder.is_dir():
            raise StorageMissingError(f"the folder {str(self._folder)!r} cannot hold blobs: it is gone")
        with self._complaints():
            try_writing(self._folder)

    def _sync_above(self, path: Path) -> None:
        for folder in path.relative_to(self._folder).parents:
            sync(self._folder / folder)


class BucketBlobs(ObjectBlobs):
    """An S3 bucket. Links are presigned, by the public endpoint if there is one."""

    remote = True

    def __init__(self, store: S3Store, public: S3Store, where: str) -> None:
        super().__init__(store, where)
        self._public = public

    def link(self, key: str, *, seconds: int = 3600) -> str | None:
        with self._complaints():
            return obstore.sign(self._public, "GET", _checked(key), timedelta(seconds=seconds))


def _open_s3(url: str, credentials: S3Credentials) -> BucketBlobs:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    for name in options.keys() - _S3_OPTIONS:
        raise SettingsError(f"the S3 address has an option {name!r}; it takes 'endpoint', 'region', 'public_endpoint'")
    if not parts.hostname or "@" in parts.netloc:
        raise SettingsError("an S3 address is s3://bucket?endpoint=..., and credentials are settings of their own")
    prefix = parts.path.strip("/")
    if prefix:
        _checked(prefix)
    endpoint = options.get("endpoint", "")
    where = f"s3://{parts.netloc}{parts.path}"
    try:
        store, public = (
            _bucket(parts.netloc, prefix, address, options.get("region", ""), credentials)
            for address in (endpoint, options.get("public_endpoint", endpoint))
        )
    except BaseError as error:
        raise SettingsError(f"{where!r} cannot be opened: {error}") from None
    return BucketBlobs(store, public, where)


def _bucket(bucket: str, prefix: str, endpoint: str, region: str, credentials: S3Credentials) -> S3Store:
    config: dict[str, str] = {"region": region or "us-east-1"}
    if endpoint:
        config["endpoint"] = endpoint
    if credentials.access_key_id:
        config["access_key_id"] = credentials.access_key_id
        config["secret_access_key"] = credentials.secret_access_key
    if credentials.session_token:
        config["session_token"] = credentials.session_token
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=config,  # type: ignore[arg-type]
        virtual_hosted_style_request=not endpoint,
        client_options={"allow_http": endpoint.startswith("http://"), "connect_timeout": "5s", "timeout": "600s"},
        retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
    )


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key) or any(part in {".", ".."} for part in key.split("/")):
        raise ValueError(f"{key!r} is not a blob's key")
    return key
