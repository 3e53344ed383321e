"""ZIP archives from strangers: looked at before anything is unpacked, and counted while it is.

What an archive says of itself is only a claim. Sizes are counted as the bytes come out, offsets are compared with each
other, and names are judged as they stand in the archive, before any library has cleaned them.
"""

from __future__ import annotations

import errno
import io
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, BinaryIO

from toolcrib.core.errors import InvalidBundleError

_PIECE = 256 * 1024
_ANY_RATIO_BYTES = 1_000_000
"""What is not larger than that may be as small as it likes when it is packed."""
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_DIRECTORY_BYTES_PER_MEMBER = 512


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    max_bytes: int = 1024 * 1024 * 1024
    """What all members together may come to, unpacked."""
    max_members: int = 5000
    max_ratio: float = 200
    """Unpacked to packed, of a member larger than a megabyte, and of all members if they are larger together."""
    max_depth: int = 32
    """Folders in folders."""


class Archive:
    """A ZIP archive that keeps within the limits; making one raises InvalidBundleError if it does not.

    ``what`` is what to call it in a complaint.
    """

    def __init__(self, file: BinaryIO, what: str, limits: ArchiveLimits | None = None) -> None:
        self.what = what
        self.limits = limits or ArchiveLimits()
        self._file = file
        # ZipFile reads the whole directory at once, however large it claims to be.
        cautious = _BoundedReads(file, self.limits.max_members * _DIRECTORY_BYTES_PER_MEMBER)
        try:
            with _blamed(f"{what} is not a ZIP archive that can be read"):
                self._zip = zipfile.ZipFile(cautious)
        except _TooLargeError:
            raise self._too_many() from None
        self.members = self._zip.infolist()
        with _blamed(f"{what} is damaged"):
            self._check()

    @property
    def files(self) -> list[str]:
        return [info.filename for info in self.members if not info.is_dir()]

    @property
    def folders(self) -> set[PurePosixPath]:
        """Every folder that there will be, named or not."""
        return {folder for info in self.members for folder in PurePosixPath(info.filename).parents}

    @property
    def unpacked_bytes(self) -> int:
        """What all members claim together; never less than what comes out."""
        return sum(info.file_size for info in self.members)

    def size(self, name: str) -> int:
        """What the archive claims; never less than what comes out."""
        return self._zip.getinfo(name).file_size

    def mode(self, name: str) -> int:
        """The permission bits that the archive carries, 0 if it carries none."""
        return stat.S_IMODE(self._zip.getinfo(name).external_attr >> 16)

    def pieces(self, name: str, max_bytes: int | None = None) -> Iterator[bytes]:
        """A member's content, checked against its checksum at the end."""
        limit = self.limits.max_bytes if max_bytes is None else max_bytes
        size = 0
        with _blamed(f"{name!r} in {self.what} is damaged"), self._zip.open(name) as member:
            while piece := member.read(_PIECE):
                size += len(piece)
                if size > limit:
                    raise InvalidBundleError(f"{name!r} in {self.what} is larger than {limit:,} bytes")
                yield piece
        if size != self.size(name):
            raise InvalidBundleError(f"{name!r} in {self.what} is damaged: it ends after {size:,} bytes")

    def read(self, name: str, max_bytes: int) -> bytes:
        return b"".join(self.pieces(name, max_bytes))

    def copy(self, name: str, target: IO[bytes]) -> None:
        for piece in self.pieces(name):
            target.write(piece)

    def verify(self) -> None:
        """Decompress everything, keep nothing."""
        for name in self.files:
            for _ in self.pieces(name):
                pass

    def check_ratio(self, packed_bytes: int) -> None:
        """InvalidBundleError if all of it is too large for what came in, ``packed_bytes``."""
        if self.unpacked_bytes > max(_ANY_RATIO_BYTES, self.limits.max_ratio * packed_bytes):
            raise InvalidBundleError(f"{self.what} unpacks to more than {self.limits.max_ratio:g} times its size")

    def _check(self) -> None:
        limits = self.limits
        if len(self.members) > limits.max_members:
            raise self._too_many()
        names = _Names(self)
        for info in self.members:
            names.add(info.orig_filename)
            self._check_kind(info)
            if info.file_size > _ANY_RATIO_BYTES and info.file_size > limits.max_ratio * max(info.compress_size, 1):
                raise InvalidBundleError(
                    f"{info.filename!r} in {self.what} unpacks to more than {limits.max_ratio:g} times its size"
                )
        self.check_ratio(sum(info.compress_size for info in self.members))
        if self.unpacked_bytes > limits.max_bytes:
            raise InvalidBundleError(f"{self.what} unpacks to more than {limits.max_bytes:,} bytes")
        self._check_overlaps()

    def _check_kind(self, info: zipfile.ZipInfo) -> None:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind == stat.S_IFLNK:
            raise InvalidBundleError(f"{info.filename!r} in {self.what} is a link; only files and folders may be there")
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            raise InvalidBundleError(
                f"{info.filename!r} in {self.what} is a device or pipe; only files and folders may be there"
            )
        if info.flag_bits & _ENCRYPTED:
            raise InvalidBundleError(f"{info.filename!r} in {self.what} is encrypted")
        if info.compress_type not in _METHODS:
            raise InvalidBundleError(
                f"{info.filename!r} in {self.what} is compressed by method {info.compress_type}; use 'deflate'"
            )

    def _check_overlaps(self) -> None:
        """Members that share bytes make a small archive large without any member being suspicious."""
        taken = 0
        for info in sorted(self.members, key=lambda info: info.header_offset):
            self._file.seek(max(info.header_offset, 0))  # a damaged directory points before the beginning
            header = self._file.read(_LOCAL_HEADER.size)
            if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL_SIGNATURE):
                raise InvalidBundleError(f"{info.filename!r} in {self.what} is damaged: its header is missing")
            _, name_length, extra_length = _LOCAL_HEADER.unpack(header)
            if info.header_offset < taken:
                raise InvalidBundleError(f"{info.filename!r} in {self.what} overlaps another member")
            taken = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length + info.compress_size
        if taken > self._zip.start_dir:
            raise InvalidBundleError(f"{self.what} is damaged: a member overlaps its directory")

    def _too_many(self) -> InvalidBundleError:
        return InvalidBundleError(f"{self.what} has more than {self.limits.max_members:,} members")


class _Names:
    """The names seen so far, as the strictest file system would compare them."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add(self, name: str) -> None:
        what = self._archive.what
        complaint = _complaint(name, self._archive.limits.max_depth)
        if complaint:
            raise InvalidBundleError(f"{name[:200]!r} in {what} {complaint}")
        same = unicodedata.normalize("NFC", name).casefold()
        path = PurePosixPath(same)
        folders = {str(folder) for folder in path.parents if str(folder) != "."}
        key = str(path)
        is_folder = name.endswith("/")
        if key in self._files or (not is_folder and key in self._folders) or folders & self._files:
            raise InvalidBundleError(f"{name!r} is in {what} twice, or is a file and a folder")
        self._folders |= folders
        (self._folders if is_folder else self._files).add(key)


def _complaint(name: str, max_depth: int) -> str:
    parts = name.removesuffix("/").split("/")
    if not name.isprintable() or "\ufffd" in name:
        return "has control characters in its name"
    if "\\" in name or ":" in name:
        return "has a '\\' or ':' in its name"
    if any(part in {"", ".", ".."} for part in parts):
        return "leaves its folder"
    if len(name) > 1024 or any(len(part.encode()) > 255 for part in parts):
        return "has too long a name"
    if any(part.endswith((".", " ")) for part in parts):
        return "has a name that ends with a dot or a blank, which some disks leave out"
    if len(parts) > max_depth:
        return f"lies more than {max_depth} folders deep"
    return ""


@contextmanager
def _blamed(complaint: str) -> Iterator[None]:
    """Around what reads a stranger's archive: whatever goes wrong is the archive's fault, unless the disk says so.

    The library raises many kinds of errors for damage, and other ones in other versions of Python.
    """
    try:
        yield
    except (InvalidBundleError, _TooLargeError):
        raise
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # EINVAL: a place where no file can have anything
            raise
        raise InvalidBundleError(f"{complaint}: {error}") from None
    except Exception as error:  # noqa: BLE001 - see above
        raise InvalidBundleError(f"{complaint}: {str(error) or type(error).__name__}") from None


class _TooLargeError(Exception):
    pass


class _BoundedReads(io.RawIOBase):
    """A file that refuses to be read in large pieces."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._inner = file
        self._limit = limit

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._inner.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._inner.seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            content = self._inner.read(self._limit + 1)
        else:
            content = self._inner.read(min(size, self._limit + 1))
        if len(content) > self._limit:
            raise _TooLargeError
        return content
