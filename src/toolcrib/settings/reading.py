"""From the environment and the file to settings.

A value comes from a ``TOOLCRIB_*`` variable, else from ``toolcrib.toml``, else from the default. The file is the one
that ``TOOLCRIB_CONFIG`` names, else ``toolcrib.toml`` here, else ``toolcrib/toolcrib.toml`` in the user's
configuration folder. In the file a table is a prefix: ``[jwt] issuer = ...`` is ``jwt_issuer``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolcrib.core.errors import SettingsError, did_you_mean
from toolcrib.settings.fields import FIELDS, PREFIX, Settings, converted, user_folder

_ALIASES = {"plugins_dir": "AIWHISPERER_PLUGINS_DIR"}
_CONFIG_VARIABLE = f"{PREFIX}CONFIG"


def load_settings(environ: Mapping[str, str] | None = None, folder: Path | None = None) -> Settings:
    """What is in force now; SettingsError names a variable or a key that does not exist or has a wrong value."""
    environ = dict(os.environ if environ is None else environ)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for given in (_from_file(environ, folder or Path.cwd()), _from_environment(environ)):
        for name, (value, source) in given.items():
            values[name] = converted(name, value, source)
            sources[name] = source
    return Settings(**values, sources=sources, environ=environ)


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for name, variable in _ALIASES.items():
        if variable in environ:
            found[name] = environ[variable], variable
    known = [PREFIX + name.upper() for name in FIELDS]
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable == _CONFIG_VARIABLE:
            continue
        if variable not in known:
            raise SettingsError(f"there is no setting {variable!r}{did_you_mean(variable, known)}")
        found[variable.removeprefix(PREFIX).lower()] = value, variable
    return found


def _from_file(environ: Mapping[str, str], folder: Path) -> dict[str, tuple[Any, str]]:
    path = _config_file(environ, folder)
    if path is None:
        return {}
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"the settings file {str(path)!r} cannot be read: {error}") from None
    found = {}
    for name, value in _flat(data):
        if name not in FIELDS:
            raise SettingsError(f"there is no setting {name!r} ({path}){did_you_mean(name, FIELDS)}")
        found[name] = value, str(path)
    return found


def _config_file(environ: Mapping[str, str], folder: Path) -> Path | None:
    if named := environ.get(_CONFIG_VARIABLE):
        return Path(named).expanduser()
    candidates = (
        folder / "toolcrib.toml",
        user_folder(environ, "XDG_CONFIG_HOME", ".config") / "toolcrib/toolcrib.toml",
    )
    return next((path for path in candidates if path.is_file()), None)


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}_")
        else:
            yield prefix + key, value
