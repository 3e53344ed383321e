"""Credentials sealed with AES-256-GCM. The keys come from outside the store, which knows only a fingerprint.

A sealed value is ``v1:<fingerprint of the key>:<base64 of nonce and ciphertext>``, so a value says which key opens it.
The store names the one key that seals (:class:`ClaimedSeal`), all of a process's keys open, and that is how keys are
rotated.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolcrib.adapters.files import locked, replace_file
from toolcrib.core.errors import ConflictError, MissingDependencyError, SettingsError, StoreError
from toolcrib.ports import SEAL_CLAIM, Store

_FORMAT = "v1"
_KEY_BYTES = 32
_NONCE_BYTES = 12


class AesGcmSeal:
    """Seals with the first of ``keys`` (base64 of 32 bytes each), opens with any of them."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise SettingsError("there is no key to seal credentials with; set TOOLCRIB_SEAL_KEYS")
        self._ciphers = {fingerprint(key): _cipher(key) for key in keys}
        self._newest = fingerprint(keys[0])

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


def fingerprint(key: str) -> str:
    """What tells a key from others and may be shown."""
    return hashlib.sha256(b"toolcrib seal key id" + _key_bytes(key)).hexdigest()[:8]


def read_keys(path: Path) -> tuple[str, ...]:
    """The keys in a file, newest first; none if there is no file."""
    with _naming(path):
        return tuple(path.read_text(encoding="ascii").split()) if path.exists() else ()


def add_key(path: Path, *, first: bool = False) -> tuple[str, ...]:
    """Put a new key before those in the file, which only its owner can read; all of them.

    The old ones stay, because old versions are sealed with them. ``first`` adds none if one is there: two programs
    that need a key at once get the same.
    """
    with _naming(path), locked(path):
        keys = read_keys(path)
        if not (keys and first):
            keys = (new_key(), *keys)
            replace_file(path, "".join(f"{key}\n" for key in keys).encode())
        return keys


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


def _cipher(key: str) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingDependencyError("cryptography", extra="server") from None
    return AESGCM(_key_bytes(key))


def _parts(sealed: str, tool: str) -> tuple[str, bytes]:
    try:
        version, key_id, text = sealed.split(":")
        data = base64.b64decode(text, validate=True)
    except (ValueError, AttributeError):
        version, key_id, data = "", "", b""
    if version != _FORMAT or len(data) <= _NONCE_BYTES:
        raise StoreError(f"a credential of {tool!r} in the store is not a sealed value")
    return key_id, data


class ClaimedSeal:
    """A seal for the credentials in ``store``, which names the key by its fingerprint.

    ``given`` are the keys of the settings; without any, ``path`` is the file of those that are made at the first
    need: most catalogues have no credentials, and then need no key. Without a path the key ends with the store.
    """

    def __init__(self, store: Store, given: Sequence[str], path: Path | None) -> None:
        self._store = store
        self._given = tuple(given)
        self._path = path
        self._seal: AesGcmSeal | None = None

    def check(self) -> None:
        if keys := self._keys():
            self._ordered(keys, self._store.claimed(SEAL_CLAIM) or fingerprint(keys[0]))

    def require(self) -> None:
        if self._store.remote or self._store.claimed(SEAL_CLAIM):
            self._ours()

    def rotate(self) -> None:
        before = self._store.claimed(SEAL_CLAIM)
        keys = self._given or self._make(first=False)
        if self._store.claim(SEAL_CLAIM, fingerprint(keys[0]), instead_of=before) != fingerprint(keys[0]):
            raise ConflictError("somebody else rotates the keys of this store at the same time; repeat it")
        self._seal = None

    def close(self, value: Any, context: str) -> str:
        return self._ready().close(value, context)

    def open(self, sealed: str, context: str) -> Any:
        """Looks for the keys again if none opens: they may have been rotated meanwhile."""
        try:
            return self._ready().open(sealed, context)
        except SettingsError:
            self._seal = None
            return self._ready().open(sealed, context)

    def _ready(self) -> AesGcmSeal:
        if self._seal is None:
            self._seal = AesGcmSeal(self._ours())
        return self._seal

    def _ours(self) -> tuple[str, ...]:
        """Our keys, the one that the store names first; it is made, and named, if there is none yet."""
        keys, named = self._keys(), self._store.claimed(SEAL_CLAIM)
        if not named:
            keys = keys or self._make(first=True)
            named = self._store.claim(SEAL_CLAIM, fingerprint(keys[0]))
        return self._ordered(keys, named)

    def _ordered(self, keys: tuple[str, ...], named: str) -> tuple[str, ...]:
        if named not in map(fingerprint, keys):
            raise self._stranger(keys, named)
        return tuple(sorted(keys, key=lambda key: fingerprint(key) != named))

    def _keys(self) -> tuple[str, ...]:
        return self._given or (read_keys(self._path) if self._path else ())

    def _make(self, *, first: bool) -> tuple[str, ...]:
        if self._path is not None:
            return add_key(self._path, first=first)
        self._given = (new_key(), *self._given)
        return self._given

    def _stranger(self, keys: tuple[str, ...], named: str) -> SettingsError:
        ours = f"only {', '.join(map(fingerprint, keys))}" if keys else "no key"
        return SettingsError(
            f"the credentials in this store are sealed with key {named}, and this process has {ours}; copy the key "
            f"file of a process that has it to {str(self._path)!r}, or set TOOLCRIB_SEAL_KEYS to its keys "
            "(if it is lost, 'toolcrib keys rotate --lost' gives up what it sealed)"
        )
