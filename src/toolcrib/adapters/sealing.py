"""Credentials sealed with AES-256-GCM. The keys come from outside the store.

A sealed value is ``v1:<key id>:<base64 of nonce and ciphertext>``. The key id is a fingerprint of the key, so a value
says which key opens it; the first key seals, all of them open, and that is how keys are rotated.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from toolcrib.core.errors import MissingDependencyError, SettingsError, StoreError

_FORMAT = "v1"
_KEY_BYTES = 32
_NONCE_BYTES = 12


class AesGcmSeal:
    """Seals with the first of ``keys`` (base64 of 32 bytes each), opens with any of them."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise SettingsError("there is no key to seal credentials with; set TOOLCRIB_SEAL_KEYS")
        ciphers = [_cipher(_key_bytes(key)) for key in keys]
        self._ciphers = {key_id: cipher for key_id, cipher in reversed(ciphers)}  # noqa: C416 - the first key wins
        self._newest = ciphers[0][0]

    def close(self, value: Any, context: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        sealed = nonce + self._ciphers[self._newest].encrypt(nonce, plain, context.encode())
        return f"{_FORMAT}:{self._newest}:{base64.b64encode(sealed).decode()}"

    def open(self, sealed: str, context: str) -> Any:
        from cryptography.exceptions import InvalidTag

        tool = context.split("\0", maxsplit=1)[0]
        key_id, data = _parts(sealed, tool)
        if key_id not in self._ciphers:
            raise SettingsError(
                f"a credential of {tool!r} is sealed with key {key_id!r}, which TOOLCRIB_SEAL_KEYS lacks"
            )
        try:
            plain = self._ciphers[key_id].decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], context.encode())
        except InvalidTag:
            raise StoreError(f"a sealed credential of {tool!r} was changed in the store, so it does not open") from None
        return json.loads(plain)

    def __repr__(self) -> str:
        return f"<AesGcmSeal with {len(self._ciphers)} keys, sealing with {self._newest!r}>"


def new_key() -> str:
    """A fresh key, as the settings take it."""
    return base64.b64encode(os.urandom(_KEY_BYTES)).decode()


def key_file(path: Path) -> tuple[str, ...]:
    """The keys in a file that only its owner can read, newest first; one is made at the first need.

    Two programs that need it at once get the same.
    """
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            # Linked into place: nobody reads half a key, and the second of two creators loses.
            with _draft(path, [new_key()]) as draft, suppress(FileExistsError):
                os.link(draft, path)
        return tuple(path.read_text(encoding="ascii").split())


def add_key(path: Path) -> None:
    """Put a new key before those in the file. They stay, because old versions are sealed with them."""
    keys = key_file(path)
    with _naming(path), _draft(path, [new_key(), *keys]) as draft:
        draft.replace(path)


@contextmanager
def _draft(path: Path, keys: Sequence[str]) -> Iterator[Path]:
    """A file with the keys beside ``path``, on the disk and gone afterwards."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write("".join(f"{key}\n" for key in keys))
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the key file {str(path)!r} cannot be used: {error}") from None


def _key_bytes(key: str) -> bytes:
    try:
        raw = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise SettingsError("a key in TOOLCRIB_SEAL_KEYS is not base64") from None
    if len(raw) != _KEY_BYTES:
        raise SettingsError(f"a key in TOOLCRIB_SEAL_KEYS has {len(raw)} bytes instead of {_KEY_BYTES}")
    return raw


def _cipher(key: bytes) -> tuple[str, Any]:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingDependencyError("cryptography", extra="server") from None
    return hashlib.sha256(b"toolcrib seal key id" + key).hexdigest()[:8], AESGCM(key)


def _parts(sealed: str, tool: str) -> tuple[str, bytes]:
    try:
        version, key_id, text = sealed.split(":")
        data = base64.b64decode(text, validate=True)
    except (ValueError, AttributeError):
        version, key_id, data = "", "", b""
    if version != _FORMAT or len(data) <= _NONCE_BYTES:
        raise StoreError(f"a credential of {tool!r} in the store is not a sealed value")
    return key_id, data


class DeferredSeal:
    """A seal that is made when a credential first needs it: most catalogues have none, and then need no key.

    A value that it cannot open makes it look for the keys again: they may have been rotated meanwhile.
    """

    def __init__(self, make: Callable[[], AesGcmSeal]) -> None:
        self._make = make
        self._seal: AesGcmSeal | None = None

    def close(self, value: Any, context: str) -> str:
        return self._ready().close(value, context)

    def open(self, sealed: str, context: str) -> Any:
        try:
            return self._ready().open(sealed, context)
        except SettingsError:
            self._seal = None
            return self._ready().open(sealed, context)

    def _ready(self) -> AesGcmSeal:
        if self._seal is None:
            self._seal = self._make()
        return self._seal
