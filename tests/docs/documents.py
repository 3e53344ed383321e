"""Reading the documentation: the blocks of a Markdown file that a reader would run.

``python`` blocks of a file share one namespace; a ``text`` block right after one is what it prints. In a ``console``
block ``$ `` begins a command, and the lines below it are its output, where ``...`` stands for anything. A comment
before a block gives it another meaning: ``<!-- file: NAME -->`` writes it to a file, ``<!-- not run: REASON -->``
leaves it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^( *)(`{3,})(.*)$")
_COMMENT = re.compile(r"^ *<!-- *(file|not run): *(.+?) *-->$")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    line: int
    meaning: str = ""
    """``file`` or ``not run``, where a comment says so."""
    detail: str = ""


@dataclass(slots=True)
class Command:
    line: str
    number: int
    output: list[str] = field(default_factory=list)


def documents(root: Path) -> list[Path]:
    """README.md and the pages that are written by hand."""
    pages = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "docs/guides").glob("*.md")]
    return sorted(page for page in pages if page.is_file())


def blocks(text: str) -> Iterator[Block]:
    lines = text.splitlines()
    at, comment = 0, ("", "")
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            remark = _COMMENT.match(lines[at])
            if remark is not None:
                comment = (remark[1], remark[2])
            elif lines[at].strip():
                comment = ("", "")
            at += 1
            continue
        indent, ticks, language = fence.groups()
        start = at + 1
        end = next(i for i in range(start, len(lines)) if lines[i].strip() == ticks)
        body = "\n".join(line.removeprefix(indent) for line in lines[start:end])
        yield Block(language.strip(), body, start + 1, *comment)
        at, comment = end + 1, ("", "")


def commands(block: Block) -> list[Command]:
    """The commands of a console block; a line that ends in a backslash goes on in the next."""
    found: list[Command] = []
    goes_on = False
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            found.append(Command(line[2:], number))
        elif goes_on:
            found[-1].line += "\n" + line.removeprefix("> ")
        elif found:
            found[-1].output.append(line)
        goes_on = line.endswith("\\") and (goes_on or line.startswith("$ "))
    return found


def agrees(expected: str, actual: str) -> bool:
    """Whether output is as written, ``...`` being anything; blank space at the ends does not count."""
    pattern = ".*".join(re.escape(part.strip("\n")) for part in expected.strip().split("..."))
    pattern = pattern.replace(r"\n.*", r"\s*.*").replace(r".*\n", r".*\s*")
    return re.fullmatch(pattern, actual.strip(), re.DOTALL) is not None
