"""Keys that tools ask for by ``required_config``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from dotenv import dotenv_values

from toolcrib.core.errors import SettingsError


class Secrets:
    """``secrets(name)`` is what a tool asked for: from the environment, else from the ``.env`` file."""

    def __init__(self, environ: Mapping[str, str], env_file: Path) -> None:
        self._environ = environ
        self._env_file = env_file

    def __call__(self, name: str) -> str | None:
        """The value, or None; an empty one counts as absent."""
        return self._environ.get(name) or self._from_file.get(name) or None

    @cached_property
    def _from_file(self) -> dict[str, str | None]:
        try:
            return dotenv_values(self._env_file, interpolate=False)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"the file {str(self._env_file)!r} cannot be read: {error}") from None

    def __repr__(self) -> str:
        return f"<Secrets of the environment and {str(self._env_file)!r}>"
