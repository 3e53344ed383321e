"""What was meant is guessed for names alone: to compare two long texts takes the square of their length."""

from random import Random

import pytest

from toolcrib import tool
from toolcrib.core.errors import InvalidArgumentsError, did_you_mean

LETTERS = [chr(0x4E00 + number % 150) for number in range(300_000)]
"""No letter is so common that difflib would leave it out."""


def shuffled(seed: int) -> str:
    return "".join(Random(seed).sample(LETTERS, len(LETTERS)))


def test_a_short_name_is_guessed_and_a_long_one_is_not() -> None:
    assert did_you_mean("colour", ["color"]) == "; did you mean 'color'?"
    assert did_you_mean("x" * 129, ["x" * 128]) == ""
    assert did_you_mean("x" * 128, ["x" * 129]) == ""


async def test_a_call_with_a_long_name_is_refused_at_once() -> None:
    """The tool's author chose one long name, its caller another: minutes of the event loop, if they were compared."""

    @tool(parameters={"type": "object", "properties": {shuffled(1): {}}, "additionalProperties": False})
    def named(**arguments: object) -> int:
        """It has an argument with a very long name."""
        return 1

    with pytest.raises(InvalidArgumentsError, match="has no argument"):
        await named.execute({shuffled(2): 1})
