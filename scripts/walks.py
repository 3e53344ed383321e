#!/usr/bin/env python3
"""Trace five requests through the service and print the modules that each passes through, in order.

A walk should go forward: each module is entered once, and nothing that a module calls calls it back. ``again`` marks a
module that is entered more than once, ``back`` one that is called by what it called itself. At the end, what the
HTTP half of ``get`` and ``run`` share, and what they do not.
"""

from __future__ import annotations

import io
import json
import tempfile
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.testclient import TestClient

from toolcrib.settings import load_settings
from toolcrib.surfaces.serve import application

ROOT = Path(__file__).parents[1]
SOURCE = f"{ROOT}/src/"
EXAMPLE = ROOT / "examples" / "bundle"


class Walk:
    """What was entered, from the first call to the last."""

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()
        self.back: Counter[str] = Counter()
        self._frames: set[FrameType] = set()

    def see(self, frame: FrameType, event: str) -> None:
        # A coroutine that goes on is called anew, in the frame that it had.
        if event != "call" or frame in self._frames or not (module := module_of(frame)):
            return
        self._frames.add(frame)
        callers = list(modules_above(frame))
        if callers[:1] == [module]:
            return
        self.entered[module] += 1
        if module in callers:
            self.back[module] += 1


class Tracer:
    """Watches every thread that starts after it; ``walk`` is where it writes, if anywhere."""

    def __init__(self) -> None:
        self.walk: Walk | None = None
        threading.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if self.walk is not None:
            self.walk.see(frame, event)

    def trace(self, ask: Callable[[], Any]) -> tuple[Walk, Any]:
        self.walk = walk = Walk()
        try:
            return walk, ask()
        finally:
            self.walk = None


def module_of(frame: FrameType) -> str:
    path = frame.f_code.co_filename
    if not path.startswith(SOURCE) or frame.f_code.co_name == "<module>":
        return ""
    return path.removeprefix(SOURCE).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def modules_above(frame: FrameType) -> Iterator[str]:
    above = frame.f_back
    while above is not None:
        if module := module_of(above):
            yield module
        above = above.f_back


def bundle(name: str) -> bytes:
    """The bundle of examples/bundle, by another name."""
    code, whole = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        for path in sorted((EXAMPLE / "code").rglob("*.py")):
            archive.write(path, path.relative_to(EXAMPLE).as_posix())
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("spec.json", json.dumps(json.loads((EXAMPLE / "spec.json").read_bytes()) | {"tool_id": name}))
        archive.writestr("tool.zip", code.getvalue())
        archive.write(EXAMPLE / "tool.md", "tool.md")
    return whole.getvalue()


def requests(client: TestClient, name: str) -> dict[str, Callable[[], Any]]:
    return {
        "upload": lambda: client.post("/tools/upload", files={"file": (f"{name}.zip", bundle(name))}),
        "get": lambda: client.get(f"/tools/{name}"),
        "run": lambda: client.post(f"/tools/{name}/run", json={"arguments": {"text": "to be"}}),
        "search": lambda: client.get("/tools/query/by-keyword", params={"keyword": "words"}),
        "check-compat": lambda: client.post("/tools/check-compat", json={"tools": [name, "first"]}),
    }


def print_walk(title: str, walk: Walk) -> None:
    print(f"\n{title}, {len(walk.entered)} modules")
    for module, count in walk.entered.items():
        marks = [f"again ({count} times)"] * (count > 1) + ["back"] * bool(walk.back[module])
        print(f"  {module:48} {', '.join(marks)}".rstrip())


def main() -> None:
    walks: dict[str, Walk] = {}
    tracer = Tracer()
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings({"TOOLCRIB_DATA_DIR": folder, "TOOLCRIB_STORE": f"sqlite:///{folder}/tools.db"})
        with TestClient(application(settings), base_url="http://127.0.0.1:8000") as client:
            for ask in requests(client, "first").values():  # so that no import is part of a walk
                ask()
            for kind, ask in requests(client, "second").items():
                walks[kind], answer = tracer.trace(ask)
                if not answer.is_success or '"success":false' in answer.text:
                    raise SystemExit(f"{kind} failed, so its walk says nothing: {answer.text}")
                print_walk(f"{kind}: {answer.status_code}", walks[kind])
    get, run = ({module for module in walks[kind].entered if ".surfaces." in module} for kind in ("get", "run"))
    print(f"\nHTTP half: get and run share {len(get & run)} modules")
    print(f"  only get: {', '.join(sorted(get - run)) or 'none'}")
    print(f"  only run: {', '.join(sorted(run - get)) or 'none'}")


if __name__ == "__main__":
    main()
