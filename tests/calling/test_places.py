"""Places: bounded in all and for each caller, served by turns, and never lost."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.calling.places import CALLER, Places
from toolcrib.core.errors import OverloadedError


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_waits_is_served_by_turns_of_callers() -> None:
    places, order = Places("tests", 1), list[str]()
    await places.take("busy")

    async def ask(caller: str) -> None:
        async with places.taken(caller):
            order.append(caller)

    tasks = [asyncio.create_task(ask(caller)) for caller in ("greedy", "greedy", "greedy", "modest")]
    await _settle()
    places.give_back("busy")
    await asyncio.gather(*tasks)
    assert order == ["greedy", "modest", "greedy", "greedy"]
    assert (places.busy, places.waiting) == (0, 0)


async def test_one_caller_cannot_hold_every_place() -> None:
    places = Places("tests", 4, each=3)
    for _ in range(3):
        await places.take("greedy")
    assert not places.try_take("greedy")
    token = CALLER.set("modest")
    async with places.taken():
        assert places.busy == 4
    CALLER.reset(token)


async def test_waiting_is_bounded_for_one_caller_and_in_all() -> None:
    places = Places("the workbench", 1, waiting=3, queued=2)
    await places.take("a")
    tasks = [asyncio.create_task(places.take(who)) for who in ("greedy", "greedy", "modest")]
    await _settle()
    for who, reason in (("greedy", "too many of your requests wait for the workbench"), ("new", "too many requests")):
        with pytest.raises(OverloadedError, match=reason):
            await places.take(who)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (places.busy, places.waiting) == (1, 0)


def test_places_are_shared_between_event_loops_and_survive_a_closed_one() -> None:
    places = Places("tests", 1)
    gone = asyncio.new_event_loop()
    gone.run_until_complete(places.take("a"))
    waiting = places.take("b")
    gone.run_until_complete(_begun(waiting))
    gone.close()
    places.give_back("a")  # nobody is there to take the turn of b
    asyncio.run(places.take("c"))
    assert (places.busy, places.waiting) == (1, 0)
    waiting.close()


async def _begun(waiting: Coroutine[Any, Any, None]) -> None:
    """The first step alone: what waits goes on waiting when the loop has ended."""
    waiting.send(None)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 3)), max_size=40), st.integers(1, 3))
def test_no_place_is_lost_whoever_gives_up_when(asks: list[tuple[str, bool, int]], most: int) -> None:
    async def play() -> None:
        places = Places("tests", most, each=2)

        async def ask(caller: str, pauses: int) -> None:
            async with places.taken(caller):
                assert places.busy <= most
                for _ in range(pauses):
                    await asyncio.sleep(0)

        tasks = []
        for caller, gives_up, pauses in asks:
            task = asyncio.create_task(ask(caller, pauses))
            tasks.append(task)
            await asyncio.sleep(0)
            if gives_up:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (places.busy, places.waiting) == (0, 0)

    asyncio.run(play())
