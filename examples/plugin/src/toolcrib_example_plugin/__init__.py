"""Tools of an example plugin: one named by itself, the others by their module."""

import random

from toolcrib import tool


@tool(name="roll-dice", category="games", tags=["random"])
def roll_dice(sides: int = 6, count: int = 1) -> list[int]:
    """Roll dice.

    Args:
        sides: How many sides each of them has.
        count: How many there are.
    """
    return [random.randint(1, sides) for _ in range(count)]
