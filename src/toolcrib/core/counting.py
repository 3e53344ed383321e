"""How much text is for a model."""

from __future__ import annotations

from collections.abc import Callable

CountTokens = Callable[[str], int]
"""Counts the tokens of a text, such as ``lambda text: len(encoding.encode(text))`` of tiktoken."""


def estimated_tokens(text: str) -> int:
    """About as many as a model counts: four characters of ASCII are a token, two of anything else."""
    if text.isascii():
        return -(-len(text) // 4)
    ascii_characters = len(text.encode("ascii", "ignore"))
    return -(-ascii_characters // 4) + -(-(len(text) - ascii_characters) // 2)
