"""The language of regular expressions: a regular subset, read into a tree and written out again.

What goes beyond regular languages (back-references, look-around, possessive and atomic groups) is refused by name.
``\\d \\w \\s \\b`` mean ASCII, as they do in MongoDB. The text that :func:`written` gives has every class and case
written out, so that no engine's own idea of them counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolcrib.core.errors import InvalidQueryError

MAX_PATTERN_LENGTH = 1000
MAX_REPEAT = 200
MAX_NESTING = 30
_MAX_CASELESS_RANGE = 5000
_LAST_CHARACTER = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of (or, negated, outside) some ranges of code points."""

    ranges: Ranges
    negated: bool = False

    def accepts(self, character: str) -> bool:
        code = ord(character)
        return any(low <= code <= high for low, high in self.ranges) is not self.negated


@dataclass(frozen=True, slots=True)
class Assertion:
    """``^``, ``$`` and their relations: start, end, line_start, line_end, very_end, word, not_word."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: Node
    least: int
    most: int | None


Node = Chars | Assertion | Sequence | Choice | Repeat

DIGIT: Final[Ranges] = ((48, 57),)
WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE: Final[Ranges] = ((9, 13), (32, 32))
_CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b", "0": "\0"}
_ESCAPED_ASSERTIONS = {"A": "start", "z": "very_end", "Z": "end", "b": "word", "B": "not_word"}


def read(pattern: str, options: str) -> Node:
    """The tree of ``pattern``, or InvalidQueryError that says what in it is not allowed."""
    return _Reader(pattern, options).read()


class _Reader:
    """Reads one pattern; every complaint says what in it is not allowed."""

    def __init__(self, pattern: str, options: str) -> None:
        self.pattern = pattern
        self.options = options
        self.at = 0
        self.nesting = 0

    def read(self) -> Node:
        if self.pattern.startswith("(?i)"):
            self.options += "i"
            self.at = 4
        node = self.choice()
        if self.at < len(self.pattern):
            raise self.wrong("has a ')' that closes nothing")
        return node

    def wrong(self, why: str) -> InvalidQueryError:
        shown = self.pattern if len(self.pattern) <= 80 else f"{self.pattern[:77]}..."
        return InvalidQueryError(f"the regular expression {shown!r} {why}")

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self, what: str = "something") -> str:
        if self.at >= len(self.pattern):
            raise self.wrong(f"ends where {what} must follow")
        self.at += 1
        return self.pattern[self.at - 1]

    def choice(self) -> Node:
        options = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() not in {"", "|", ")"}:
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self, part: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return part
        if isinstance(part, Assertion):
            raise self.wrong("repeats an anchor")
        if self.peek() == "+":
            raise self.wrong("has a possessive quantifier, which is not allowed")
        if self.peek() == "?":  # lazy: what is matched is the same, only found in another order
            self.at += 1
        if self.bounds() is not None:
            raise self.wrong("repeats a repetition; put the inner one in a group")
        least, most = bounds
        return Repeat(part, least, most)

    def bounds(self) -> tuple[int, int | None] | None:
        sign = self.peek()
        if sign in {"*", "+", "?"}:
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        if sign != "{":
            return None
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : end if end > 0 else None].partition(",")
        if end < 0 or not _is_number(low) or (high and not _is_number(high)):
            raise self.wrong("has a '{' that begins no count; write '\\{' for the character")
        self.at = end + 1
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self.wrong(f"has a count that is not within 0 and {MAX_REPEAT}, the smaller number first")
        return least, most

    def atom(self) -> Node:
        sign = self.take()
        match sign:
            case "(":
                return self.group()
            case "[":
                return self.char_class()
            case ".":
                return Chars(() if "s" in self.options else ((10, 10),), negated=True)
            case "^":
                return Assertion("line_start" if "m" in self.options else "start")
            case "$":
                return Assertion("line_end" if "m" in self.options else "end")
            case "\\":
                return self.escape()
            case "*" | "+" | "?" | "{":
                raise self.wrong(f"has a {sign!r} that repeats nothing; write '\\{sign}' for the character")
        return self.literal(sign)

    def group(self) -> Node:
        if self.peek() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise self.wrong(
                    f"uses {self.pattern[self.at - 1 : self.at + 3]!r}; look-around, named groups and inline options "
                    "are not allowed, only '(...)', '(?:...)' and '(?i)' in front"
                )
            self.at += 2
        elif self.peek() == "*":
            raise self.wrong("uses '(*', which is not allowed")
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.wrong(f"nests groups more than {MAX_NESTING} deep")
        node = self.choice()
        self.nesting -= 1
        if self.take("')'") != ")":
            raise self.wrong("has a '(' that is never closed")
        return node if not isinstance(node, Assertion) else Sequence((node,))

    def escape(self) -> Node:
        sign = self.take("an escaped character")
        if sign in _ESCAPED_ASSERTIONS:
            return Assertion(_ESCAPED_ASSERTIONS[sign])
        if sign.lower() in _CLASSES:
            return Chars(_CLASSES[sign.lower()], negated=sign.isupper())
        return self.literal(self.escaped_character(sign))

    def escaped_character(self, sign: str) -> str:
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign == "x":
            digits = self.pattern[self.at : self.at + 2]
            if len(digits) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
                self.at += 2
                return chr(int(digits, 16))
            raise self.wrong("has a '\\x' without its two hexadecimal digits")
        if sign.isascii() and sign.isalnum():
            meaning = "a back-reference" if sign.isdigit() else "an escape"
            raise self.wrong(f"uses '\\{sign}', {meaning} that is not allowed")
        return sign

    def literal(self, character: str) -> Chars:
        code = ord(character)
        return Chars(self.caseless(((code, code),)))

    def char_class(self) -> Node:
        negated = self.peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.peek() != "]":
            low = self.class_item(ranges)
            first = False
            if low is None:
                continue
            high = low
            if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in {"]", ""}:
                self.at += 1
                upper = self.class_item(ranges)
                if upper is None:
                    raise self.wrong("has a range that ends in a class")
                high = upper
            if high < low:
                raise self.wrong(f"has a range that runs backwards: {chr(low)!r} to {chr(high)!r}")
            ranges.append((low, high))
        self.at += 1
        return Chars(self.caseless(tuple(ranges)), negated=negated)

    def class_item(self, ranges: list[tuple[int, int]]) -> int | None:
        """One code point, or None if the item was a class that went into ``ranges``."""
        sign = self.take("']'")
        if sign == "[" and self.peek() in {":", ".", "="}:
            raise self.wrong(f"uses '[{self.peek()}' inside a class, which is not allowed")
        if sign != "\\":
            return ord(sign)
        sign = self.take("an escaped character")
        if sign.lower() in _CLASSES:
            ranges.extend(_CLASSES[sign] if sign.islower() else _complement(_CLASSES[sign.lower()]))
            return None
        if sign == "b":
            return 8
        return ord(self.escaped_character(sign))

    def caseless(self, ranges: Ranges) -> Ranges:
        """The ranges with the other case of every letter in them, if the option ``i`` asks for it."""
        if "i" not in self.options:
            return ranges
        if sum(high - low for low, high in ranges if high < _LAST_CHARACTER) > _MAX_CASELESS_RANGE:
            raise self.wrong("has too wide a range for the option 'i'")
        codes = {code for low, high in ranges if high < _LAST_CHARACTER for code in range(low, high + 1)}
        others = {ord(other) for code in codes for other in (chr(code).lower(), chr(code).upper()) if len(other) == 1}
        return ranges + tuple((code, code) for code in sorted(others - codes))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _complement(ranges: Ranges) -> Ranges:
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    return (*gaps, (start, _LAST_CHARACTER))


# The tree as text

_ASSERTIONS = {
    "start": r"\A",
    "end": r"\Z",
    "very_end": r"\z",
    "line_start": "^",
    "line_end": "$",
    "word": r"\b",
    "not_word": r"\B",
}
OPTIONS = "m"
"""The option under which the texts of this module mean what they should."""


def written(node: Node) -> str:
    """The expression with every class and case written out, to be read with the option ``m`` and no other."""
    match node:
        case Chars(ranges, negated):
            if not ranges:
                return r"[\s\S]" if negated else r"[^\s\S]"
            return f"[{'^' if negated else ''}{''.join(map(_range, ranges))}]"
        case Assertion(kind):
            return _ASSERTIONS[kind]
        case Sequence(parts):
            return "".join(map(written, parts))
        case Choice(options):
            return f"(?:{'|'.join(map(written, options))})"
        case Repeat(part, least, most):
            count = f"{{{least},{'' if most is None else most}}}"
            # MongoDB's engine gives up on a group after some 4,000 turns, on a single class it does not.
            return f"{written(part)}{count}" if isinstance(part, Chars) else f"(?:{written(part)}){count}"


def _range(span: tuple[int, int]) -> str:
    low, high = span
    return _character(low) if low == high else f"{_character(low)}-{_character(high)}"


def _character(code: int) -> str:
    character = chr(code)
    return character if code > 127 or character.isalnum() else f"\\x{code:02x}"
