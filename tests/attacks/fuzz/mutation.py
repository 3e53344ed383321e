"""Good inputs, made worse. The same draw gives the same bytes, so a number is enough to see an input again."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

LARGEST = 64 * 1024
"""How many bytes an input grows to: what is slow for so few is not linear."""

Step = Callable[[bytes, Sequence[bytes], Random], bytes]

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.0, -0.0, 10_000.0, 1e300, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**33,
    10**400, float("nan"),
    float("inf"), "", "\0", "a", "$a", "a.b", "..", "x" * 1000, "\ud800", "é", "e\u0301", "\u202e", "ﬀ", "K",
    "\ufeff", [], {}, [None], {"": ""}, [[]], {"$ref": "#"}, {"$ref": "#/$defs/a"}, {"$eq": 1}, {"type": "object"},
    {"type": ["object", "null"]}, {"$regex": "(a+)+$"}, {"$elemMatch": {}}, {"$where": "1"}, {"toolcrib": {}},
)  # fmt: skip
_SIGNS = (
    b"\0",
    b"\xff",
    b"\n",
    b"\r\n",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x80",
)


def damaged(corpus: Sequence[bytes], words: Sequence[bytes], draw: Random) -> bytes:
    """One of the corpus after a few steps. A ``word`` is what the format knows, such as a signature or a keyword."""
    content = draw.choice(corpus)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        step = draw.choice(_STEPS)
        content = step(content, (*words, *_SIGNS, *corpus), draw)[:LARGEST]
    return content


def _spot(content: bytes, draw: Random, most: int = 64) -> tuple[int, int]:
    start = draw.randint(0, len(content))
    return start, min(len(content), start + draw.randint(0, most))


def _flip(content: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        if changed:
            changed[draw.randrange(len(changed))] = draw.choice((0, 255, draw.randrange(256)))
    return bytes(changed)


def _cut(content: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    start, end = _spot(content, draw, draw.choice((4, 64, len(content))))
    return content[:start] + content[end:]


def _insert(content: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    start, end = _spot(content, draw, draw.choice((0, 0, 8)))
    return content[:start] + draw.choice(words) + content[end:]


def _repeat(content: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    """What is slower than linear shows when a piece stands there a thousand times."""
    start, end = _spot(content, draw)
    piece = content[start:end] or draw.choice(words)
    return content[:start] + piece * draw.choice((2, 3, 100, LARGEST // (len(piece) or 1))) + content[end:]


def _splice(content: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    other = draw.choice(words)
    start, end = _spot(other, draw, len(other))
    at, after = _spot(content, draw, draw.choice((0, 64, len(content))))
    return content[:at] + other[start:end] + content[after:]


def _number(content: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    """A field of some bytes, as formats have them, at one of its edges; fields stand behind words."""
    size = draw.choice((1, 2, 4, 8))
    value = draw.choice((0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), draw.randrange(256)))
    at = content.find(draw.choice(words)) + draw.randint(0, 64)
    return content[:at] + value.to_bytes(size, draw.choice(("little", "big"))) + content[at + size :]


def _value(content: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    """One value of a JSON text changed: the text stays JSON, so that what reads it comes to what it says."""
    try:
        root = [json.loads(content)]
    except (ValueError, RecursionError):
        return _insert(content, words, draw)
    try:
        place, key = draw.choice(list(_places(root)))
        _change(place, key, words, draw)
        return json.dumps(root[0]).encode()
    except (RecursionError, ValueError):
        return content


def _places(root: Any) -> Iterator[tuple[Any, Any]]:
    todo = [root]
    while todo:
        inner = todo.pop()
        for key, item in list(inner.items() if isinstance(inner, dict) else enumerate(inner)):
            yield inner, key
            if isinstance(item, dict | list):
                todo.append(item)


def _change(place: Any, key: Any, words: Sequence[bytes], draw: Random) -> None:
    old = place[key]
    match draw.randrange(7):
        case 0 | 1:
            place[key] = draw.choice(ODD_VALUES)
        case 2:
            place[key] = _known(draw.choice(words))
        case 3:
            for _ in range(draw.choice((1, 10, 100))):
                old = [old] if draw.random() < 0.5 else {str(key): old}
            place[key] = old
        case 4 if isinstance(place, dict):
            place[draw.choice((f"{key} ", str(key).upper(), "$" + str(key), f"{key}.{key}", "toolcrib"))] = old
        case 5 if isinstance(old, str):
            content = old.encode(errors="surrogatepass")
            place[key] = draw.choice((_flip, _cut, _insert, _repeat))(content, words, draw).decode(errors="replace")
        case _ if isinstance(place, dict):
            del place[key]
        case _:
            place.extend([old] * draw.choice((1, 1000)))


def _known(word: bytes) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return word.decode(errors="replace")


_STEPS: tuple[Step, ...] = (_flip, _cut, _insert, _repeat, _splice, _number, *6 * (_value,))
