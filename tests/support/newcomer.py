"""Somebody who has just installed Toolcrib: no settings, and a home of their own."""

import os
from pathlib import Path

from tests.support.chromium import find_chromium

_SETTINGS = ("TOOLCRIB_", "XDG_", "AIWHISPERER_")


def newcomer_environment(home: Path) -> dict[str, str]:
    """This environment without anybody's settings. Chromium is named, because it may lie below the real home."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    if chromium := find_chromium():
        environment["TOOLCRIB_CHROMIUM"] = chromium
    return {**environment, "HOME": str(home)}
