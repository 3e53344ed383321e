"""What was meant is guessed for names alone: to compare two long texts takes the square of their length. One name in a
tool's schema and another in a call, 300,000 characters each, would have been minutes of the event loop."""

import pytest

from toolcrib import tool
from toolcrib.core.errors import InvalidArgumentsError, did_you_mean


def test_a_short_name_is_guessed_and_a_long_one_is_not() -> None:
    assert did_you_mean("colour", ["color"]) == "; did you mean 'color'?"
    assert did_you_mean("x" * 128, ["x" * 127]) != ""
    assert did_you_mean("x" * 129, ["x" * 128]) == ""
    assert did_you_mean("x" * 128, ["x" * 129]) == ""


async def test_a_call_with_a_long_name_is_refused_without_a_guess() -> None:
    @tool(parameters={"type": "object", "properties": {"ab" * 1000: {}}, "additionalProperties": False})
    def named(**arguments: object) -> int:
        """It has an argument with a very long name."""
        return 1

    with pytest.raises(InvalidArgumentsError) as refused:
        await named.execute({"ba" * 1000: 1})
    assert "did you mean" not in str(refused.value)
