"""Regular expressions that cannot hang: matched by RE2, in time linear in the text; see docs/decisions/0091.

RE2 lacks two things of the language: an ``end`` that also holds before the newline that ends the text, and a
``line_start`` that does not hold after it. Both matter only to a text that ends in a newline, so such a text is matched
without that newline, by an expression that knows it follows (:func:`_before_newline`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcrib.core.errors import InvalidQueryError
from toolcrib.core.query.budget import reading
from toolcrib.core.query.syntax import (
    MAX_PATTERN_LENGTH,
    OPTIONS,
    Assertion,
    Chars,
    Choice,
    Node,
    Repeat,
    Sequence,
    read,
    written,
)

_MAX_MEMORY = 2 * 1024 * 1024
"""Of one compiled expression; RE2 keeps up to 128 of them."""
_MAX_WRITTEN = 30_000
"""MongoDB takes expressions of up to 32,764 bytes."""

_NEVER = Chars(())
_TEXT_END = Assertion("very_end")
_NEVER_AFTER_NEWLINE = frozenset({"start", "line_start", "word"})


class Pattern:
    """A checked regular expression. ``search`` takes time linear in the text, and counts it."""

    __slots__ = ("_search", "_search_before_newline", "_size", "options", "source", "tree")

    def __init__(self, source: str, options: str = "") -> None:
        if not isinstance(source, str):
            raise InvalidQueryError(f"a regular expression is text, not {source!r:.80}")
        if len(source) > MAX_PATTERN_LENGTH:
            raise InvalidQueryError(f"a regular expression may have {MAX_PATTERN_LENGTH} characters, not {len(source)}")
        for option in options:
            if option not in "ims":
                raise InvalidQueryError(f"the regular expression option {option!r} is not known; use 'i', 'm' or 's'")
        self.source = source
        self.options = "".join(sorted(set(options)))
        self.tree = read(source, self.options)
        compiled = _compiled(self.tree)
        self._search: Callable[[bytes], object] = compiled.search
        self._size: int = compiled.programsize
        self._search_before_newline: Callable[[bytes], object] | None = (
            _compiled(_before_newline(self.tree)).search if _asserts(self.tree, "end", "line_start") else None
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and (self.source, self.options) == (other.source, other.options)

    def __hash__(self) -> int:
        return hash((self.source, self.options))

    def __repr__(self) -> str:
        return f"Pattern({self.source!r}, {self.options!r})"

    def search(self, text: str) -> bool:
        """Whether the expression matches anywhere in ``text``."""
        search = self._search
        if self._search_before_newline is not None and text.endswith("\n"):
            text, search = text[:-1], self._search_before_newline
        read = text.encode(errors="replace")
        reading(len(read), self._size)
        return search(read) is not None


def match_from_start(source: str) -> Callable[[str], bool]:
    """A test whether a name begins with a match of ``source``; InvalidQueryError if that is no regular expression."""
    search = _compiled(Sequence((Assertion("start"), Pattern(source).tree))).search
    return lambda name: search(name.encode(errors="replace")) is not None


def _compiled(tree: Node) -> Any:
    """RE2's expression for ``tree``; InvalidQueryError if that would be too large."""
    import re2

    # RE2 has no \Z. Here it means the same as \z, and nothing else is written so: a backslash is written \x5c.
    text = written(tree).replace(r"\Z", r"\z")
    if _asserts(tree, "not_word"):
        text = rf"\A[\s\S]*?(?:{text})"  # or RE2 finds a \B between the bytes of one character
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        if len(text.encode()) > _MAX_WRITTEN:
            raise re2.error("it is too long")
        return re2.compile(f"(?{OPTIONS}){text}", options)
    except re2.error:
        raise InvalidQueryError(
            "the regular expression is too large once its counts and classes are written out; make it simpler"
        ) from None


def _asserts(node: Node, *kinds: str) -> bool:
    match node:
        case Assertion(kind):
            return kind in kinds
        case Sequence(parts) | Choice(parts):
            return any(_asserts(part, *kinds) for part in parts)
        case Repeat(part):
            return _asserts(part, *kinds)
    return False


def _before_newline(tree: Node) -> Node:
    """What a text must match so that ``tree`` matches the text and one newline after it."""
    if _holds_at_end(tree):
        return Sequence(())
    return Choice((_within(tree), *_across(tree)))


def _within(node: Node) -> Node:
    """``node`` matched before the newline."""
    match node:
        case Assertion("end"):
            return _TEXT_END
        case Assertion("very_end"):
            return _NEVER
        case Sequence(parts):
            return Sequence(tuple(map(_within, parts)))
        case Choice(options):
            return Choice(tuple(map(_within, options)))
        case Repeat(part, least, most):
            return Repeat(_within(part), least, most)
    return node


def _across(node: Node) -> list[Node]:
    """``node`` matched up to and with the newline: the ways to match what stands before that, at the text's end."""
    match node:
        case Chars():
            return [_TEXT_END] if node.accepts("\n") else []
        case Sequence(parts):
            found: list[Node] = []
            for at in range(len(parts) - 1, -1, -1):
                before = [_within(part) for part in parts[:at]]
                found += [Sequence((*before, crossing)) for crossing in _across(parts[at])]
                if not _holds_at_end(parts[at]):
                    break
            return found
        case Choice(options):
            return [crossing for option in options for crossing in _across(option)]
        case Repeat(part, least, most) if most != 0:
            fewest = 0 if _holds_at_end(part) else max(least - 1, 0)
            turns = Repeat(_within(part), fewest, None if most is None else most - 1)
            return [Sequence((turns, crossing)) for crossing in _across(part)]
    return []


def _holds_at_end(node: Node) -> bool:
    """Whether ``node`` matches nothing at all behind the newline that ends the text."""
    match node:
        case Assertion(kind):
            return kind not in _NEVER_AFTER_NEWLINE
        case Sequence(parts):
            return all(map(_holds_at_end, parts))
        case Choice(options):
            return any(map(_holds_at_end, options))
        case Repeat(part, least):
            return least == 0 or _holds_at_end(part)
    return False
