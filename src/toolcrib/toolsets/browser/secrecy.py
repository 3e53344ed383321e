"""Secrets are named in calls, ``{{name}}``, and known only where they are typed."""

from __future__ import annotations

import html
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from toolcrib import AddressRules, ToolResult
from toolcrib.toolsets.browser.failures import NotConfiguredError, SecretDeniedError

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9_.\-]+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Secret:
    """``domains`` names the hosts whose pages may be given it; empty means every page."""

    value: str = field(repr=False)
    domains: tuple[str, ...] = ()


class Secrets:
    """Fills placeholders in, and takes the values out of everything that leaves the session."""

    def __init__(self, secrets: Mapping[str, str | Secret]) -> None:
        self._secrets = {
            name: secret if isinstance(secret, Secret) else Secret(secret) for name, secret in secrets.items()
        }
        self._names = {form: name for name, secret in self._secrets.items() for form in _forms(secret.value)}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._bytes = [(form.encode(), f"{{{{{self._names[form]}}}}}".encode()) for form in longest_first]

    @property
    def values(self) -> list[str]:
        return [secret.value for secret in self._secrets.values() if secret.value]

    def in_text(self, text: str) -> bool:
        """Whether filling the text in would put a secret into it."""
        return bool(self._secrets) and _PLACEHOLDER.search(text) is not None

    def reveal(self, text: str, url: str) -> str:
        """The text with its placeholders filled in, for a page at ``url``. Without any secret, text is just text."""
        if not self._secrets:
            return text
        return _PLACEHOLDER.sub(lambda found: self._value(found.group(1), url), text)

    def _value(self, name: str, url: str) -> str:
        secret = self._secrets.get(name)
        if secret is None:
            known = ", ".join(sorted(self._secrets))
            raise NotConfiguredError(f"no secret is called {name!r}; the session has {known}")
        if AddressRules(secret.domains).refusal_of_url(url):
            where, page = ", ".join(secret.domains), urlsplit(url).hostname or repr(url)
            raise SecretDeniedError(f"the secret {name!r} is for {where} and the page is on {page}")
        return secret.value

    def redact(self, value: Any) -> Any:
        """The value with every secret in it, however encoded, replaced by its placeholder."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self._pattern.sub(lambda found: f"{{{{{self._names[found.group()]}}}}}", value)
        if isinstance(value, Mapping):
            return {self.redact(key): self.redact(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact(inner) for inner in value]
        return value

    def redact_result(self, result: ToolResult) -> ToolResult:
        data, error, metadata = (self.redact(part) for part in (result.data, result.error, result.metadata))
        return replace(result, data=data, error=error, metadata=metadata)

    def redact_archive(self, source: Path, target: Path) -> None:
        """Copy a trace without the secrets that its snapshots, calls and bodies hold."""
        with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.infolist():
                data = old.read(entry)
                for form, placeholder in self._bytes:
                    data = data.replace(form, placeholder)
                new.writestr(entry.filename, data)


def _forms(value: str) -> set[str]:
    """How a value looks in text, JSON, an address, a form body or HTML."""
    if not value:
        return set()
    as_json = json.dumps(value)[1:-1]
    return {
        value,
        as_json,
        json.dumps(as_json)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        html.escape(value),
        html.escape(value, quote=False),
    }
