"""Keys that tools ask for by ``required_config``, and which names are secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolcrib.core.errors import MissingConfigError, SettingsError

MASK = "********"
_SECRET_WORDS = ("KEY", "SECRET", "PASSWORD", "TOKEN")


def is_secret(name: str) -> bool:
    """Whether a configuration key is masked when it is listed: by the words in it."""
    return any(word in name.upper() for word in _SECRET_WORDS)


class Secrets:
    """The configuration keys that tools ask for by ``required_config``: the environment, else the ``.env`` file."""

    def __init__(self, environ: Mapping[str, str], env_file: Path) -> None:
        self._environ = environ
        self._env_file = env_file

    def get(self, name: str) -> str | None:
        """The value, or None; an empty one counts as absent."""
        return self._environ.get(name) or self._from_file().get(name) or None

    __call__ = get

    def require(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise MissingConfigError(
                f"the key {name!r} is not configured; set it in the environment or in {self._env_file}"
            )
        return value

    def missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.get(name) is None]

    def listed(self, names: Iterable[str]) -> dict[str, str | None]:
        """The values for showing, those with a secret's name masked."""
        found = {name: self.get(name) for name in names}
        return {name: MASK if value and is_secret(name) else value for name, value in found.items()}

    def _from_file(self) -> dict[str, str]:
        try:
            lines = self._env_file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"the file {str(self._env_file)!r} cannot be read: {error}") from None
        return dict(pair for line in lines if (pair := _env_line(line)) is not None)

    def __repr__(self) -> str:
        return f"<Secrets of the environment and {str(self._env_file)!r}>"


_ENV_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")


def _env_line(line: str) -> tuple[str, str] | None:
    """``NAME=value`` with or without quotes; comments and anything else are passed over."""
    match = _ENV_LINE.fullmatch(line)
    if match is None:
        return None
    name, value = match.groups()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return name, value[1:-1]
    return name, re.split(r"\s#", value, maxsplit=1)[0].rstrip()
