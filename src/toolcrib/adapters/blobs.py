"""Blobs through obstore: a folder, an S3 bucket (AWS, Ceph, any other), or memory.

file:///var/lib/toolcrib/blobs
s3://bucket/prefix?endpoint=http://ceph.internal:7480&region=default&public_endpoint=https://files.example.org
memory:
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, urlsplit

from toolcrib.adapters.files import file_path, make_folder, narrow, sync
from toolcrib.core.errors import MissingDependencyError, SettingsError, StoreError
from toolcrib.ports import Blobs

try:
    import obstore
    from obstore.exceptions import BaseError, NotFoundError
    from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store
except ImportError as error:
    raise MissingDependencyError("obstore", extra="s3") from error

_KEY = re.compile(r"[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,128}){0,7}")
_PART_BYTES = 8 * 1024 * 1024
_STAGING = ".incoming"
_MISSING = (NotFoundError, FileNotFoundError)
_NO_BUCKET = "<Code>NoSuchBucket</Code>"
_NOBODY = ".ping"
"""A key that no blob has: asking for it shows that the store answers."""
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
        return FolderBlobs(file_path(url, "folder"))
    if parts.scheme == "s3":
        return _open_s3(url, credentials or S3Credentials())
    raise SettingsError(f"{url!r} is not an address of blobs; use file:///path, s3://bucket?endpoint=... or memory:")


class ObjectBlobs:
    """Any object store. A second ``put`` of a key writes it again, which renews its age for the orphan collector."""

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

    def link(self, key: str, *, seconds: int = 3600) -> str | None:  # noqa: ARG002 - nobody else can read our memory
        return None

    def delete(self, key: str) -> None:
        with self._complaints(), contextlib.suppress(*_MISSING):
            obstore.delete(self._store, _checked(key))

    def keys(self) -> Iterator[tuple[str, float]]:
        with self._complaints():
            for batch in obstore.list(self._store):
                for entry in batch:
                    yield entry["path"], entry["last_modified"].timestamp()

    def ping(self) -> None:
        self.open(_NOBODY)

    def _pieces(self, found: obstore.GetResult) -> Iterator[bytes]:
        with self._complaints():
            for piece in found.stream():
                yield bytes(piece)

    @contextlib.contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            if _NO_BUCKET in str(error):
                raise StoreError(
                    f"the bucket of {self._where!r} does not exist; create it, or name another one in TOOLCRIB_BLOBS"
                ) from None
            reason = str(error).partition("\n")[0]
            raise StoreError(f"the blob store at {self._where!r} failed: {reason:.300}") from error


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
        with self._complaints():
            try:
                os.utime(final)
                return
            except FileNotFoundError:
                pass
            staged = f"{_STAGING}/{uuid.uuid4().hex}"
            try:
                obstore.put(self._store, staged, source, chunk_size=_PART_BYTES, max_concurrency=2)
                sync(self._folder / staged)
                obstore.rename(self._store, staged, key)
            except BaseException:
                (self._folder / staged).unlink(missing_ok=True)
                raise
            for folder in final.relative_to(self._folder).parents:
                sync(self._folder / folder)

    def ping(self) -> None:
        if not os.access(self._folder, os.R_OK | os.W_OK | os.X_OK):
            raise StoreError(f"the folder {str(self._folder)!r} cannot hold blobs: it is gone or cannot be written")


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
