"""Bundles on the local disk, each unpacked once under its digest."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from toolcrib.adapters.files import make_folder
from toolcrib.core.errors import InvalidBundleError, StoreError
from toolcrib.formats.archives import Archive
from toolcrib.formats.bundle import blob_key
from toolcrib.ports import Blobs

_STAGING = ".unpacking-"


@dataclass(frozen=True, slots=True)
class Unpacked:
    """``kind`` is ``python`` or ``program``; ``path`` the folder of the code, or the program itself."""

    kind: str
    path: Path
    requirements: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """What is unpacked stays where it is until ``release``."""

    unpacked: Unpacked

    def release(self) -> None: ...


class BundleCache:
    """``get`` unpacks a bundle at its first use. Several processes may share the folder."""

    def __init__(self, blobs: Blobs, folder: Path) -> None:
        self._blobs = blobs
        self._folder = folder

    def get(self, digest: str) -> Unpacked:
        """Raises InvalidBundleError if the code is not there or cannot be run."""
        target = self._folder / digest
        if not target.is_dir():
            try:
                self._unpack(digest, target)
            except OSError as error:
                raise StoreError(f"the bundle {digest} cannot be unpacked: {error}") from None
        return _runnable(target)

    def lease(self, digest: str) -> Lease:
        """As ``get``, for as long as a run needs it."""
        return Lease(self.get(digest))

    def forget(self, digest: str) -> None:
        shutil.rmtree(self._folder / digest, ignore_errors=True)

    def _unpack(self, digest: str, target: Path) -> None:
        pieces = self._blobs.open(blob_key(digest))
        if pieces is None:
            raise InvalidBundleError(f"the code of the bundle {digest} is gone from the blobs; upload it again")
        make_folder(self._folder)
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._folder))
        try:
            with tempfile.TemporaryFile(dir=staging) as file:
                checksum = hashlib.sha256()
                for piece in pieces:
                    checksum.update(piece)
                    file.write(piece)
                if checksum.hexdigest() != digest:
                    raise InvalidBundleError(f"the stored bundle {digest} is not what was uploaded")
                file.seek(0)
                _extract(Archive(file, f"the bundle {digest:.12}"), staging)
            try:
                staging.rename(target)
            except OSError:
                if not target.is_dir():  # otherwise somebody else was quicker
                    raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _extract(archive: Archive, folder: Path) -> None:
    for name in archive.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            archive.copy(name, file)
        path.chmod(0o755 if archive.mode(name) & 0o111 else 0o644)
    for inner, _, _ in os.walk(folder):
        Path(inner).chmod(0o755)  # shown to whom the code runs as; the folder above is closed


def _runnable(folder: Path) -> Unpacked:
    code = folder / "code"
    if (code / "function.py").is_file():
        listed = code / "requirements.txt"
        text = listed.read_text(encoding="utf-8", errors="replace") if listed.is_file() else ""
        return Unpacked("python", code, text)
    files = [path for path in code.rglob("*") if path.is_file()] if code.is_dir() else []
    if len(files) != 1:
        raise InvalidBundleError(
            "the bundle cannot be run: its 'tool.zip' needs 'code/function.py', or one program alone in 'code/'"
        )
    if not os.access(files[0], os.X_OK):
        files[0].chmod(0o755)  # archives made elsewhere carry no permissions
    return Unpacked("program", files[0])
