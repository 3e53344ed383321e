"""What must not be shown, taken out of what is: one rule for logs, audit and traces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.core.addresses import mask_passwords
from toolcrib.core.defaults import applying, item_schemas
from toolcrib.core.json import MASK, as_json, pointer_keys

SECRET_NAMES = (
    "password", "passwords", "passwd", "passphrase", "secret", "secrets", "token", "api_key", "apikey", "access_key",
    "private_key", "secret_key", "auth", "authorization", "cookie", "cookies", "credential", "credentials",
    "session_id", "cvv",
)  # fmt: skip
"""A key that has one of them among its words holds a secret: ``api_key``, ``githubToken``, ``X-API-Key``."""

MARKED = re.compile('"writeOnly": true|"format": "password"')
"""How the text of a JSON Schema marks a secret, as that of pydantic's ``SecretStr`` does."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_TOKENS = re.compile(
    r"tcrib_[A-Za-z0-9_-]{16,}|(?<=[Bb]earer )[^\s'\"]+|(?<=[Bb]asic )[A-Za-z0-9+/]{8,}=*"
    r"|eyJ[\w-]{8,}+\.[\w-]++\.[\w-]*|(?P<harmless>eyJ[\w-]*+)"
    r"|(?<![\w-])(?:sk-(?=[\w-]{0,80}[0-9])[\w-]{20,}|gh[opsur]_\w{30,}|github_pat_\w{30,}|xox[abeprs]-[\w-]{10,}"
    r"|glpat-[\w-]{20,}|AIza[\w-]{30,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9]))"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[^\"'])*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)
"""Toolcrib's own tokens, what stands behind Bearer and Basic, JWTs, the keys of model and code providers, private keys.

What begins like a JWT and is none is read once, not again from each of its letters: time grows with the text."""
_SEPARATOR = re.compile(r"""\\{0,3}["']?\s?[=:]\s?""")
_LONGEST_NAME = 61
_NAME = re.compile(r"[^\W\d_][\w-]*\Z")
_VALUE = re.compile(r""""(?:[^"\\]|\\.)++|'(?:[^'\\]|\\.)++|\\{1,3}["'][^"'\\]++|[^\s"',;&{}\[\]()<>]++""", re.DOTALL)
"""What stands behind a name in a text: ``password=hunter2``, ``"api_key": "abc"``, ``?token=abc``, without the closing
quote, which there need not be: texts are cut."""
_HEADERS = frozenset({"authorization", "cookie"})
_HEADER = re.compile(r"""[^"'\\\s][^"'\\\r\n]*+""")
"""The value of such a header has several words: ``Authorization: Token abc``, ``Cookie: a=1; b=2``."""


def without_secrets(text: str) -> str:
    """The last line of defence: a token, a JWT or a password in an address is masked wherever it turns up."""
    return mask_passwords(_TOKENS.sub(lambda found: found["harmless"] or MASK, text))


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
    _most_words: int = field(init=False, repr=False, compare=False)
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _pointers: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for given in ("names", "patterns", "pointers"):
            if isinstance(getattr(self, given), str):
                raise TypeError(f"{given} is a list of texts, not one text")
            object.__setattr__(self, given, tuple(getattr(self, given)))
        names = [_words(name) for name in self.names]
        object.__setattr__(self, "_names", frozenset(map("_".join, names)))
        object.__setattr__(self, "_most_words", max(map(len, names), default=0))
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
            for end in range(start + 1, min(last, start + self._most_words) + 1)
        )

    def _without_named(self, text: str) -> str:
        shown, at = [], 0
        while (separator := _SEPARATOR.search(text, at)) is not None:
            name = _NAME.search(text, max(at, separator.start() - _LONGEST_NAME), separator.start())
            shown.append(text[at : separator.end()])
            at = separator.end()
            if name is not None and self._names_a_secret(name[0]):
                is_header = ":" in separator[0] and _words(name[0])[-1] in _HEADERS
                secret = (is_header and _HEADER.match(text, at)) or _VALUE.match(text, at)
                if secret:
                    opening = len(secret[0]) - len(secret[0].lstrip("\\\"'"))
                    shown.append(secret[0][:opening] + MASK)
                    at = secret.end()
        return "".join(shown) + text[at:] if shown else text


def without_marked(schema: Mapping[str, Any] | None, value: Any) -> Any:
    """The value with the mask wherever its schema marks a secret; as JSON, if there is a schema."""
    if not schema:
        return value
    try:
        return _unmarked([schema], as_json(value), schema)
    except RecursionError:
        return MASK


def _unmarked(schemas: Iterable[Any], value: Any, root: Mapping[str, Any]) -> Any:
    parts = list(_possible(schemas, root))
    if any(part.get("writeOnly") is True or part.get("format") == "password" for part in parts):
        return MASK
    if isinstance(value, dict):
        return {key: _unmarked([_member(part, key) for part in parts], item, root) for key, item in value.items()}
    if isinstance(value, list):
        places = [item_schemas(part) for part in parts]
        return [
            _unmarked([first[at] if at < len(first) else rest for first, rest in places], item, root)
            for at, item in enumerate(value)
        ]
    return value


def _possible(schemas: Iterable[Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All that holds for a value, or may: what is referred to, and the alternatives."""
    seen: set[int] = set()
    todo = list(schemas)
    while todo:
        for part in applying(todo.pop(), root):
            if id(part) not in seen:
                seen.add(id(part))
                yield part
                todo += [*part.get("anyOf", ()), *part.get("oneOf", ())]


def _member(schema: Mapping[str, Any], key: str) -> Any:
    return schema.get("properties", {}).get(key, schema.get("additionalProperties"))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _steps(pointer: str) -> tuple[str, ...]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"a JSON pointer begins with '/', as '/card/number'; {pointer!r} does not")
    return tuple(pointer_keys(pointer))


def _below(pointers: tuple[tuple[str, ...], ...], key: str) -> tuple[tuple[str, ...], ...]:
    """The pointers as they go on inside of ``key``."""
    if not pointers:
        return ()
    return tuple(steps[1:] for steps in pointers if steps[0] in (key, "*"))


REDACTION = Redaction()
"""What is a secret by its name or its looks."""
