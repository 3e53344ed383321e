"""The bundle that is run to see whether bundles can be: it needs the interpreter, its packages, a place to write."""

import os
import signal
import site
import subprocess
from pathlib import Path


class AgentSpaceV1Tool:
    def __init__(self, tool_id: str, tool_data: dict[str, object]) -> None: ...

    def execute(self, _input: dict[str, object]) -> str:
        for folder in filter(os.path.isdir, site.getsitepackages()):
            next(Path(folder).iterdir(), None)
        Path("written").write_text(signal.SIGKILL.name, encoding="ascii")
        subprocess.run(["/bin/true"], check=True)
        return "ready"
