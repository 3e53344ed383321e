"""What must not be shown, taken out of what is: one rule for logs, audit and traces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from toolcrib.core.addresses import mask_passwords
from toolcrib.core.json import MASK, as_json

SECRET_NAMES = (
    "password", "passwords", "passwd", "passphrase", "secret", "secrets", "token", "api_key", "apikey", "access_key",
    "private_key", "secret_key", "auth", "authorization", "cookie", "cookies", "credential", "credentials",
    "session_id", "cvv",
)  # fmt: skip
"""A key that has one of them among its words holds a secret: ``api_key``, ``githubToken``, ``X-API-Key``."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TOKENS = re.compile(
    r"tcrib_[A-Za-z0-9_-]{16,}|(?<=[Bb]earer )[^\s'\"]+|(?<=[Bb]asic )[A-Za-z0-9+/]{8,}=*"
    r"|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
)
_NAMED = re.compile(r"""([A-Za-z][\w-]{0,60})["']?\s?[=:]\s?""")
_VALUE = re.compile(r""""[^"]+"|'[^']+'|[^\s"',;&{}\[\]()<>]+""")
"""What stands behind a name in a text: ``password=hunter2``, ``"api_key": "abc"``, ``?token=abc``."""


def without_secrets(text: str) -> str:
    """The last line of defence: a token, a JWT or a password in an address is masked wherever it turns up."""
    return mask_passwords(_TOKENS.sub(MASK, text))


@dataclass(frozen=True, slots=True)
class Redaction:
    """``redact(value)`` is the value as JSON, with the mask where there are secrets; the value itself stays.

    Masked are what stands under a key that has one of ``names`` among its words, what the regular expressions
    ``patterns`` match in texts, and what the JSON ``pointers`` lead to, in which ``*`` is any key or place:
    ``/card/number``, ``/headers/*``. Tokens, JWTs and passwords in addresses are masked wherever they are.
    """

    names: Iterable[str] = SECRET_NAMES
    patterns: Iterable[str] = ()
    pointers: Iterable[str] = ()
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _pointers: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for given in ("names", "patterns", "pointers"):
            if isinstance(getattr(self, given), str):
                raise TypeError(f"{given} is a list of texts, not one text")
            object.__setattr__(self, given, tuple(getattr(self, given)))
        object.__setattr__(self, "_names", frozenset("_".join(_words(name)) for name in self.names))
        object.__setattr__(self, "_patterns", tuple(map(re.compile, self.patterns)))
        object.__setattr__(self, "_pointers", tuple(map(_steps, self.pointers)))

    def __call__(self, value: Any) -> Any:
        try:
            return self._masked(as_json(value), self._pointers)
        except RecursionError:
            return MASK

    def text(self, text: str) -> str:
        """A sentence, such as an error's, with the mask where there are secrets."""
        text = self._without_named(without_secrets(text))
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return text

    def _masked(self, value: Any, pointers: tuple[tuple[str, ...], ...]) -> Any:
        if () in pointers:
            return MASK
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                key: MASK if self._names_a_secret(key) else self._masked(item, _below(pointers, key))
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._masked(item, _below(pointers, str(place))) for place, item in enumerate(value)]
        return value

    def _names_a_secret(self, key: str) -> bool:
        words = _words(key[:200])
        last = len(words)
        return any(
            "_".join(words[start:end]) in self._names
            for start in range(last)
            for end in range(start + 1, min(last, start + 3) + 1)
        )

    def _without_named(self, text: str) -> str:
        shown, at = [], 0
        while (name := _NAMED.search(text, at)) is not None:
            shown.append(text[at : name.end()])
            at = name.end()
            if self._names_a_secret(name[1]) and (secret := _VALUE.match(text, at)) is not None:
                quote = secret[0][0] if secret[0][0] in "\"'" else ""
                shown.append(f"{quote}{MASK}{quote}")
                at = secret.end()
        return "".join(shown) + text[at:] if shown else text


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _steps(pointer: str) -> tuple[str, ...]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"a JSON pointer begins with '/', as '/card/number'; {pointer!r} does not")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def _below(pointers: tuple[tuple[str, ...], ...], key: str) -> tuple[tuple[str, ...], ...]:
    """The pointers as they go on inside of ``key``."""
    if not pointers:
        return ()
    return tuple(steps[1:] for steps in pointers if steps[0] in (key, "*"))


REDACTION = Redaction()
"""What is a secret by its name or its looks."""
