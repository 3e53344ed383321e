"""Everything the documentation shows is run here as a reader would run it, and must come out as it says."""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.docs.documents import Block, Command, agrees, blocks, commands, documents

ROOT = Path(__file__).parents[2]
RUN = ("toolcrib", "brain", "python", "cat", "ls")
"""Commands that are run; others, such as an installation, are for the reader alone."""


EXPORT = re.compile(r"export (\w+)=(\S*)")


class Reader:
    """Somebody who follows a page from top to bottom, in a folder of their own."""

    def __init__(self, page: Path, loop: asyncio.Runner, setenv: Callable[[str, str], None]) -> None:
        self.page = page
        self.setenv = setenv
        self.loop = loop
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""
        self.status = 0

    def follow(self) -> int:
        """Run every block; how many commands and blocks there were."""
        count = 0
        before: Block | None = None
        for block in blocks(self.page.read_text(encoding="utf-8")):
            where = f"{self.page.name}:{block.line}"
            if block.meaning == "file":
                path = Path(block.detail)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text + "\n", encoding="utf-8")
            elif block.meaning == "not run":
                pass
            elif block.language == "python":
                self.run_python(block, where)
                count += 1
            elif block.language == "console":
                count += sum(self.run_command(command) for command in commands(block))
            elif block.language == "text" and before is not None and before.language == "python" and not before.meaning:
                assert agrees(block.text, self.printed), f"{where}: printed was\n{self.printed}"
            before = block
        return count

    def run_python(self, block: Block, where: str) -> None:
        # As many newlines before it as the page has, so that a traceback names the page's line.
        source = "\n" * (block.line - 1) + block.text
        code = compile(source, str(self.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            outcome = eval(code, self.namespace)
            if inspect.iscoroutine(outcome):
                self.loop.run(outcome)
        self.printed = printed.getvalue()

    def run_command(self, command: Command) -> int:
        where = f"{self.page.name}:{command.number}: {command.line}"
        expected = "\n".join(command.output)
        if command.line == "echo $?":
            assert str(self.status) == expected.strip(), where
            self.status = 0
            return 0
        if export := EXPORT.fullmatch(command.line):
            self.setenv(export[1], export[2])
        if command.line.split()[0] not in RUN:
            return 0
        assert self.status == 0, f"the command before {where} ended with {self.status}"
        shell = ["bash", "-c", command.line]
        done = subprocess.run(
            shell, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
        )
        self.status = done.returncode
        if expected.strip():
            assert agrees(expected, done.stdout), f"{where}\nended with {done.returncode} and printed\n{done.stdout}"
        else:
            assert done.returncode == 0, f"{where}\nended with {done.returncode} and printed\n{done.stdout}"
        return 1


@pytest.mark.parametrize("page", documents(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    for variable in [name for name in os.environ if name.startswith(("TOOLCRIB_", "XDG_", "AIWHISPERER_"))]:
        if variable != "TOOLCRIB_CHROMIUM":
            monkeypatch.delenv(variable)
    with asyncio.Runner() as loop:
        reader = Reader(page, loop, monkeypatch.setenv)
        reader.follow()
    assert reader.status == 0, "the last command failed, and the page does not say so"


LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", documents(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path):
    broken = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert broken == []


def test_output_is_compared_with_room_for_what_changes():
    assert agrees("Added ...", "Added tool 'x'.\n")
    assert agrees("a\n...\nz", "a\nb\nc\nz")
    assert agrees("a\n...\nz", "a\nz")
    assert not agrees("a\n...\nz", "a\nb\nc")
    assert not agrees("Compatible", "Non compatible")


def test_a_block_that_fails_fails_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ python -c 'raise SystemExit(3)'\n```\n", encoding="utf-8")
    with asyncio.Runner() as loop, pytest.raises(AssertionError, match="ended with 3"):
        Reader(page, loop, monkeypatch.setenv).follow()
    page.write_text("```python\nprint(1)\n```\n```text\n2\n```\n", encoding="utf-8")
    with asyncio.Runner() as loop, pytest.raises(AssertionError, match="printed was"):
        Reader(page, loop, monkeypatch.setenv).follow()


def test_every_guide_is_in_the_index():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    missing = [page.name for page in (ROOT / "docs/guides").glob("*.md") if f"guides/{page.name}" not in index]
    assert missing == []
