"""A pattern written for a backtracking engine: the same meaning in PCRE, and only if it cannot take long there."""

from __future__ import annotations

from collections.abc import Iterator

from toolcrib.core.query.patterns import Pattern
from toolcrib.core.query.syntax import Assertion, Chars, Choice, Node, Repeat, Sequence, written

_MAX_PATHS = 5000
"""How many ways a backtracking engine may have to try from one place in the text."""


def server_side(pattern: Pattern) -> tuple[tuple[str, ...], bool]:
    """Expressions that a text must match, and whether that is enough.

    They are bounded: a backtracking engine is done with them in time linear in the text, whatever the text is. If
    the pattern itself is not, the pieces between its unbounded repetitions are; a text that matches them may match.
    """
    tree = _trimmed(pattern.tree)
    if _cost(tree) <= _MAX_PATHS or _is_anchored(tree):
        return (written(tree),), True
    pieces = [piece for piece in _pieces(tree) if _cost(piece) <= _MAX_PATHS]
    return tuple(written(piece) for piece in pieces[:5]), False


def _cost(node: Node) -> float:
    """How many ways there are to try ``node`` at one place; infinite if a repetition has no end."""
    match node:
        case Sequence(parts):
            total = 1.0
            for part in parts:
                total *= _cost(part)
            return total
        case Choice(options):
            return sum(map(_cost, options))
        case Repeat(part, least, most):
            if most is None:
                return float("inf")
            once = min(_cost(part), _MAX_PATHS + 1.0)
            if once == 1:
                return most - least + 1.0
            return sum(once**count for count in range(least, most + 1)) if most * once < 1000 else float("inf")
    return 1.0


def _is_anchored(tree: Node) -> bool:
    """Whether there is one place to begin, and one unbounded repetition of single characters after it."""
    if not isinstance(tree, Sequence) or tree.parts[:1] != (Assertion("start"),):
        return False
    unbounded = [part for part in tree.parts if isinstance(part, Repeat) and part.most is None]
    rest = Sequence(tuple(part for part in tree.parts if part not in unbounded))
    return len(unbounded) == 1 and isinstance(unbounded[0].part, Chars) and _cost(rest) <= 50


def _trimmed(tree: Node) -> Node:
    """Without the unbounded repetitions at its ends: a text holds a match of ``x*y*`` if it holds one of neither."""
    parts = list(tree.parts) if isinstance(tree, Sequence) else [tree]
    for end in (0, -1):
        while parts and isinstance(parts[end], Repeat):
            repeat = parts[end]
            assert isinstance(repeat, Repeat)
            if repeat.most is not None:
                break
            if repeat.least:
                parts[end] = Repeat(repeat.part, repeat.least, repeat.least)
                break
            parts.pop(end)
    return Sequence(tuple(parts))


def _pieces(tree: Node) -> Iterator[Node]:
    run: list[Node] = []
    for part in tree.parts if isinstance(tree, Sequence) else (tree,):
        if _cost(part) <= _MAX_PATHS:
            run.append(part)
        elif run:
            yield Sequence(tuple(run))
            run = []
    if run:
        yield Sequence(tuple(run))


def literal_parts(node: Node) -> Iterator[str]:
    """Texts that every match contains, in one case or another: what a plain search can look for.

    They are in lower case as far as ASCII goes; compare them with a text of which the same is true.
    """
    run = ""
    for part in node.parts if isinstance(node, Sequence) else (node,):
        character = _single(part)
        run += character
        if character or isinstance(part, Assertion):
            continue
        if run:
            yield run
        run = ""
        if isinstance(part, Sequence):
            yield from literal_parts(part)
        elif isinstance(part, Repeat) and part.least:
            yield from literal_parts(part.part)
    if run:
        yield run


def _single(node: Node) -> str:
    """The one character that ``node`` can be but for the case of ASCII letters, or nothing."""
    if not isinstance(node, Chars) or node.negated or len(node.ranges) > 2:
        return ""
    characters = {chr(low) if low == high else "" for low, high in node.ranges}
    lowered = {character.lower() if character.isascii() else character for character in characters}
    return lowered.pop() if len(lowered) == 1 else ""
