"""Ready means ready: every part is tried, one trial at a time, and nobody waits for a part that hangs."""

import asyncio
import threading
from collections.abc import Callable

from tests.support.waiting import until

from toolcrib.core.errors import StorageFullError
from toolcrib.surfaces.http.readiness import Readiness


def fine() -> None:
    """All is well."""


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


async def test_all_parts_are_well() -> None:
    assert await Readiness({"store": fine, "audit": fine}).problem() is None


async def test_the_first_problem_is_told_as_it_is() -> None:
    full = StorageFullError("no room")
    assert await Readiness({"store": fine, "audit": failing(full), "blobs": failing(ValueError())}).problem() is full


async def test_a_defect_keeps_its_text_to_itself() -> None:
    problem = await Readiness({"store": failing(ValueError("secret"))}).problem()
    assert (problem is not None and problem.code, "secret" in str(problem)) == ("store_failed", False)


async def test_a_trial_is_shared_and_its_answer_remembered() -> None:
    begun, go = [], threading.Event()

    def slow() -> None:
        begun.append(1)
        go.wait()

    readiness = Readiness({"store": slow}, patience=60, remembered=60)
    asking = [asyncio.create_task(readiness.problem()) for _ in range(5)]
    await until(lambda: begun)
    go.set()
    assert await asyncio.gather(*asking) == [None] * 5
    assert await readiness.problem() is None
    assert begun == [1]


async def test_what_hangs_is_not_ready_and_holds_nobody_up() -> None:
    go = threading.Event()
    readiness = Readiness({"store": fine, "audit": go.wait}, patience=0.05, remembered=0.0)
    threads = threading.active_count()
    for _ in range(3):
        problem = await readiness.problem()
        assert "the audit did not answer" in str(problem)
    assert threading.active_count() == threads + 1  # however often it is asked
    go.set()

    async def well() -> bool:
        return await readiness.problem() is None

    await until(well)


async def test_one_who_gives_up_leaves_the_trial_to_the_others() -> None:
    go = threading.Event()
    readiness = Readiness({"store": go.wait}, patience=60)
    one, other = (asyncio.create_task(readiness.problem()) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    go.set()
    assert await other is None
