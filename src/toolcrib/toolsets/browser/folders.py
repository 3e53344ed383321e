"""Files stay in the session's folders."""

from __future__ import annotations

import contextlib
import itertools
import re
from pathlib import Path

from toolcrib.toolsets.browser.failures import PathDeniedError


def confined(folder: Path, name: str) -> Path:
    """``folder / name`` if that lies in the folder, links followed; otherwise PathDeniedError."""
    root = folder.resolve()
    path = (root / name).resolve()
    if path == root or not path.is_relative_to(root):
        raise PathDeniedError(
            f"{name!r} is not a file in the session's folder; give a name without '..' or a leading '/'"
        )
    return path


def for_writing(folder: Path, name: str, suffix: str = "") -> Path:
    """A path in the folder to write to, its parents made."""
    path = confined(folder, name if not suffix or name.endswith(suffix) else name + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def for_reading(folder: Path, name: str) -> Path:
    path = confined(folder, name)
    if not path.is_file():
        present = ", ".join(sorted(entry.name for entry in folder.iterdir() if entry.is_file())[:10]) or "nothing"
        raise PathDeniedError(f"there is no file {name!r} in the session's folder, which holds {present}")
    return path


def free_name(folder: Path, suggested: str) -> Path:
    """A path for a file that a page named: only the last part of the name counts, and nothing is overwritten."""
    base = re.sub(r"[^\w.\- ]", "_", suggested.replace("\\", "/").rsplit("/", 1)[-1]).strip(". ")[:120] or "download"
    folder.mkdir(parents=True, exist_ok=True)
    stem, dot, suffix = base.partition(".")
    for number in itertools.count(1):
        path = folder / (base if number == 1 else f"{stem}-{number}{dot}{suffix}")
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)  # taken at once: two downloads may arrive together
            return path
    raise AssertionError("unreachable")
