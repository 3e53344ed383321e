"""Somebody who follows a page of the documentation from top to bottom, in a folder and a Python of their own."""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.docs.documents import Block, Command, agrees, blocks, commands
from tests.support.newcomer import newcomer_environment
from tests.support.processes import free_port
from tests.support.providers import scripted_providers

RUN = ("toolcrib", "brain", "python", "cat", "ls")
"""Commands that are run; others, such as an installation, are for the reader alone."""

PRACTICE = "python -m toolcrib.toolsets.scraping.practice"
ASKS_A_MODEL = re.compile(r"AsyncOpenAI\(|AsyncAnthropic\(|genai\.Client\(|create_agent\(|Agent\(")
EXPORT = re.compile(r"export (\w+)=(\S*)")


class Reader:
    def __init__(self, page: Path, loop: asyncio.Runner) -> None:
        self.page = page
        # A shop of this reader's own: another on the machine would share it, and close it.
        self.practice = f"{PRACTICE} --port {(port := free_port())}"
        self.text = page.read_text(encoding="utf-8").replace(":8765", f":{port}").replace(PRACTICE, self.practice)
        self.loop = loop
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""
        self.status = 0

    def follow(self) -> None:
        """Run every block; a shop that a page has opened closes with it, also if the page fails."""
        try:
            self.run_blocks()
        finally:
            if PRACTICE in self.text:
                subprocess.run(f"{self.practice} --stop".split(), check=False, stdout=subprocess.DEVNULL)

    def run_blocks(self) -> None:
        before: Block | None = None
        for block in blocks(self.text):
            where = f"{self.page.name}:{block.line}"
            if block.meaning == "file":
                path = Path(block.detail)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text + "\n", encoding="utf-8")
            elif block.meaning == "not run":
                pass
            elif block.language == "python":
                self.run_python(block)
            elif block.language == "console":
                for command in commands(block):
                    self.run_command(command)
            elif block.language == "text" and before is not None and before.language == "python" and not before.meaning:
                assert agrees(block.text, self.printed), f"{where}: printed was\n{self.printed}"
            before = block
        assert self.status == 0, "the last command failed, and the page does not say so"

    def run_python(self, block: Block) -> None:
        # As many newlines before it as the page has, so that a traceback names the page's line.
        source = "\n" * (block.line - 1) + block.text
        code = compile(source, str(self.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            outcome = eval(code, self.namespace)
            if inspect.iscoroutine(outcome):
                self.loop.run(outcome)
        self.printed = printed.getvalue()

    def run_command(self, command: Command) -> None:
        where = f"{self.page.name}:{command.number}: {command.line}"
        expected = "\n".join(command.output)
        if command.line == "echo $?":
            assert str(self.status) == expected.strip(), where
            self.status = 0
            return
        if export := EXPORT.fullmatch(command.line):
            os.environ[export[1]] = export[2]
        if command.line.split()[0] not in RUN:
            return
        assert self.status == 0, f"the command before {where} ended with {self.status}"
        shell = ["bash", "-c", command.line]
        done = subprocess.run(
            shell, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100
        )
        self.status = done.returncode
        if expected.strip():
            assert agrees(expected, done.stdout), f"{where}\nended with {done.returncode} and printed\n{done.stdout}"
        else:
            assert done.returncode == 0, f"{where}\nended with {done.returncode} and printed\n{done.stdout}"


def follow(page: Path, folder: Path) -> None:
    """Follow a page in a process that ends with it: nothing of other tests is there, and nothing of this one stays."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        process.submit(_follow_here, page, folder).result()


def _follow_here(page: Path, folder: Path) -> None:
    warnings.simplefilter("error")
    for of_google_genai in ("invalid escape sequence", "Inheritance class AiohttpClientSession"):
        warnings.filterwarnings("ignore", of_google_genai)
    os.chdir(folder)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    asks_models = ASKS_A_MODEL.search(page.read_text(encoding="utf-8"))
    no_models: dict[str, str] = {}
    models = scripted_providers() if asks_models else contextlib.nullcontext(no_models)
    with (
        models as providers,
        patch.dict(os.environ, {**newcomer_environment(folder), **providers, "PATH": path}, clear=True),
        asyncio.Runner() as loop,
    ):
        Reader(page, loop).follow()
