"""Where settings come from: ``TOOLCRIB_*`` variables, else ``toolcrib.toml``.

The file is the one that ``TOOLCRIB_CONFIG`` names, else ``toolcrib.toml`` here, else ``toolcrib/toolcrib.toml`` in the
user's configuration folder. In the file a table is a prefix: ``[jwt] issuer = ...`` is ``jwt_issuer``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolcrib.core.errors import SettingsError

PREFIX = "TOOLCRIB_"
_CONFIG_VARIABLE = f"{PREFIX}CONFIG"
_PLUGINS = "plugins_dir"
_MORE_PLUGINS = "AIWHISPERER_PLUGINS_DIR"
"""Names plugin folders too; they are added to those of our own variable."""


SourcedValues = tuple[Mapping[str, Any], Mapping[str, str]]
"""Some settings by name, and where each of them came from."""


def from_variables(environ: Mapping[str, str]) -> SourcedValues:
    variables = {
        variable.removeprefix(PREFIX).lower(): variable
        for variable in environ
        if variable.startswith(PREFIX) and variable != _CONFIG_VARIABLE
    }
    return {name: environ[variable] for name, variable in variables.items()}, variables


def with_more_plugins(ranked: Sequence[SourcedValues], environ: Mapping[str, str]) -> list[SourcedValues]:
    """With the folders of AIWhisperer's variable behind those of whichever source names some."""
    more = environ.get(_MORE_PLUGINS)
    if not more:
        return list(ranked)
    named = [(values[_PLUGINS], wheres[_PLUGINS]) for values, wheres in ranked if values.get(_PLUGINS)][:1]
    folders = [joined(folders) for folders, _ in named if isinstance(folders, str | list)]
    wheres = [where for _, where in named]
    both = ({_PLUGINS: os.pathsep.join([*folders, more])}, {_PLUGINS: ", ".join([*wheres, _MORE_PLUGINS])})
    return [both, *ranked]


def joined(folders: Any) -> Any:
    """A list of folders as ``PATH`` writes them; what is none stays."""
    is_list = isinstance(folders, list | tuple) and all(isinstance(folder, str) for folder in folders)
    return os.pathsep.join(folders) if is_list else folders


def from_file(environ: Mapping[str, str], folder: Path) -> SourcedValues:
    path = _config_file(environ, folder)
    if path is None:
        return {}, {}
    try:
        values = dict(_flat(tomllib.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError) as error:
        raise SettingsError(f"the settings file {str(path)!r} cannot be read: {error}") from None
    return values, dict.fromkeys(values, str(path))


def user_folder(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    """A folder of the user's, as the XDG base directories say."""
    named = environ.get(variable, "")
    if named.startswith("/"):
        return Path(named)
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / below_home


def _config_file(environ: Mapping[str, str], folder: Path) -> Path | None:
    if named := environ.get(_CONFIG_VARIABLE):
        return Path(named).expanduser()
    user = user_folder(environ, "XDG_CONFIG_HOME", ".config")
    candidates = (folder / "toolcrib.toml", user / "toolcrib/toolcrib.toml")
    return next((path for path in candidates if path.is_file()), None)


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}_")
        else:
            yield prefix + key, value
