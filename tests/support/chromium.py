"""Find a Chromium; run as a program it prints the path, or fails."""

import os
import shutil
import sys
from pathlib import Path


def find_chromium() -> str | None:
    if chosen := os.environ.get("TOOLCRIB_CHROMIUM"):
        return chosen
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    browsers = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright"))
    return max(map(str, browsers.glob("chromium-*/chrome-linux*/chrome")), default=None)


if __name__ == "__main__":
    sys.stdout.write(find_chromium() or sys.exit(1))
