"""Pipelines over a site in memory: checked first, streamed, bounded, mended, stopped and taken up again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.stacking.bricks import BRICKS, Fetch, Keep, LivePage, OtherFetch, Read, ReadWhenFree, Through
from tests.support.waiting import until
from toolcrib import ToolRegistry
from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.bootstrap import open_catalogue
from toolcrib.calling.authorising import Authoriser
from toolcrib.calling.call import Calls
from toolcrib.calling.recording import Recorder
from toolcrib.core.addresses import AddressRules, fence
from toolcrib.core.errors import (
    ConflictError,
    DeniedError,
    IncompatibleError,
    InvalidArgumentsError,
    MissingConfigError,
    MissingDependencyError,
    StoreError,
    ToolFailedError,
    ToolNotFoundError,
)
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Decision, PolicyRequest
from toolcrib.settings import Settings
from toolcrib.stacking import Page, Pipeline, Progress, Record, Request, StepContext, Stored


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Fetch.reset()
    OtherFetch.reset()
    LivePage.reset()
    Through.heard.clear()


def pipeline(*steps: Any, **settings: Any) -> Pipeline:
    return Pipeline.of(*(steps or ("fetch", "read", "keep")), bricks=BRICKS, **settings)


async def test_items_flow_from_request_to_stored_and_are_counted() -> None:
    Fetch.reset(lambda request: (200, "a b c" if request.url == "u1" else "d"))
    items: list[Any] = []
    report = await pipeline().run(["u1", "u2"], on_item=items.append)
    assert report.ok
    assert (report.done, report.failed, report.items) == (2, 0, 4)
    assert sorted(Keep.kept) == ["a", "b", "c", "d"]
    assert all(isinstance(item, Stored) for item in items)
    assert [(step.tool, step.taken, step.given) for step in report.steps] == [
        ("fetch", 2, 2),
        ("read", 2, 4),
        ("keep", 4, 4),
    ]
    assert Fetch.opened == 0


async def test_the_same_address_is_fetched_once() -> None:
    report = await pipeline().run(["u", "u#part", "u", Request("u")])
    assert report.done == 1
    assert Fetch.asked == {"u": 1}


async def test_links_are_followed_up_to_the_limits() -> None:
    Fetch.reset(lambda request: (200, f"w{request.depth} >{request.url}x >{request.url}y"))
    report = await pipeline(max_depth=3).run(["u"])
    assert report.done == 1 + 2 + 4 + 8
    Fetch.reset(lambda request: (200, f">{request.url}x"))
    report = await pipeline(max_pages=25).run(["u"])
    assert report.done == 25


async def test_memory_does_not_grow_with_the_number_of_pages() -> None:
    def addresses() -> Iterator[str]:
        for number in range(20_000):
            yield f"u{number}"

    report = await pipeline("fetch", "read-inline", "keep", concurrency=8).run(addresses())
    assert report.done == 20_000
    assert len(Keep.kept) == 20_000
    assert LivePage.most <= 2 * 8 + 1
    assert LivePage.alive <= 1
    assert Fetch.busiest <= 8


async def test_start_addresses_are_drawn_as_needed_also_from_an_async_source() -> None:
    drawn = 0

    async def addresses() -> AsyncIterator[str]:
        nonlocal drawn
        for number in range(1000):
            drawn += 1
            yield f"u{number}"

    stop = asyncio.Event()
    report = await pipeline(concurrency=2).run(
        addresses(), stop=stop, on_progress=lambda progress: stop.set() if progress.done == 10 else None
    )
    assert report.outcome == "stopped"
    assert not report.ok
    assert 10 <= report.done <= 14
    assert drawn <= 15


async def test_a_limit_of_pages_ends_a_start_that_never_ends() -> None:
    report = await pipeline(max_pages=5).run(f"u{number}" for number in count())
    assert report.done == 5


async def test_a_source_that_takes_its_time_holds_up_nothing_and_can_be_stopped() -> None:
    ended: list[str] = []

    def answer(request: Request) -> tuple[int, str]:
        return 200, {"u1": "w >u2", "u2": "w >u3"}.get(request.url, "w")

    async def addresses() -> AsyncIterator[str]:
        yield "u1"
        await asyncio.Event().wait()

    Fetch.reset(answer)
    stop = asyncio.Event()
    run = asyncio.create_task(pipeline().run(addresses(), stop=stop, on_progress=lambda told: ended.append(told.url)))
    await until(lambda: ended == ["u1", "u2", "u3"])
    stop.set()
    report = await run
    assert (report.outcome, report.done) == ("stopped", 3)


async def test_a_source_that_fails_ends_the_run() -> None:
    async def addresses() -> AsyncIterator[str]:
        yield "u1"
        raise OSError("the list of addresses is gone")

    with pytest.raises(OSError, match="is gone"):
        await pipeline().run(addresses())
    assert Fetch.opened == 0


async def test_storage_works_in_batches_and_one_bad_record_harms_only_its_page() -> None:
    Fetch.reset(lambda request: (200, "bad" if request.url == "u7" else "good"))
    report = await pipeline("fetch", "read-inline", ("keep", {"refuse": "bad"}), concurrency=32).run(
        f"u{number}" for number in range(64)
    )
    assert (report.done, report.failed) == (63, 1)
    assert report.failures[0].url == "u7"
    assert report.failures[0].tool == "keep"
    assert "does not like this word" in report.failures[0].reason
    assert Keep.kept.count("good") == 63
    assert len(Keep.batches) < 63


async def test_progress_is_told_for_every_page() -> None:
    told: list[Progress] = []
    Fetch.reset(lambda request: (404, "") if request.url == "u3" else (200, "w"))
    await pipeline(concurrency=1).run([f"u{number}" for number in range(5)], on_progress=told.append)
    assert [progress.done + progress.failed for progress in told] == [1, 2, 3, 4, 5]
    assert [progress.url for progress in told if not progress.ok] == ["u3"]
    assert told[-1].known == 5


async def test_what_a_brick_tells_is_heard_with_the_progress() -> None:
    told: list[Progress] = []
    await pipeline("fetch", "chatty", "keep").run(["u1"], on_progress=told.append)
    notes = [(progress.tool, progress.url, progress.note) for progress in told if progress.note]
    assert notes == [("chatty", "u1", "reading slowly")]
    assert told[-1].done == 1


# Failures


async def test_a_failure_says_where_and_why_and_the_rest_goes_on() -> None:
    Fetch.reset(lambda request: {"u1": (500, ""), "u2": (200, "!")}.get(request.url, (200, "w")))
    report = await pipeline().run(["u1", "u2", "u3"])
    assert (report.done, report.failed) == (1, 2)
    failures = {failure.url: failure for failure in report.failures}
    assert (failures["u1"].tool, failures["u1"].kind, failures["u1"].reason) == (
        "fetch",
        "500_error",
        "u1 answered 500",
    )
    assert (failures["u2"].tool, failures["u2"].kind) == ("read", "error")
    assert failures["u2"].reason == "ValueError: this page cannot be read"


async def test_retries_are_made_as_often_as_told() -> None:
    def third_time(request: Request) -> tuple[int, str]:
        return (200, "w") if Fetch.asked[request.url] == 3 else (503, "")

    Fetch.reset(third_time)
    report = await pipeline(error_handling={"5xx_error": {"retry_count": 2, "delay_seconds": 0}}).run(["u"])
    assert report.ok
    assert report.steps[0].retries == 2
    Fetch.reset(third_time)
    report = await pipeline(error_handling={"5xx_error": {"retry_count": 1, "delay_seconds": 0}}).run(["u"])
    assert report.failed == 1
    assert Fetch.asked == {"u": 2}


@pytest.mark.parametrize("word", ["retry_with", "retry_with_actor"])
async def test_another_brick_stands_in_for_the_failures_it_is_named_for(word: str) -> None:
    Fetch.reset(lambda request: (403, "") if request.url == "u1" else (404, ""))
    report = await pipeline(error_handling={"403_error": {word: "other-fetch"}}).run(["u1", "u2"])
    assert OtherFetch.asked == {"u1": 1}
    assert [(failure.url, failure.kind) for failure in report.failures] == [("u2", "404_error")]
    assert report.steps[0].substituted == 1
    assert OtherFetch.opened == 0


async def test_a_timeout_is_retried_and_then_handed_over() -> None:
    def too_slow(request: Request) -> tuple[int, str]:
        raise TimeoutError

    Fetch.reset(too_slow)
    handling = {"timeout": {"retry_count": 2, "retry_with": [{"tool": "other-fetch"}], "delay_seconds": 0}}
    report = await pipeline(error_handling=handling).run(["u"])
    assert report.ok
    assert Fetch.asked == {"u": 3}
    assert OtherFetch.asked == {"u": 1}


async def test_a_retry_goes_through_another_proxy_which_hears_of_it() -> None:
    Fetch.reset(lambda request: (200, "w") if Fetch.asked[request.url] == 2 else (502, ""))
    steps = ("through", "fetch", "read", "keep")
    report = await pipeline(*steps, error_handling={"502_error": {"retry_count": 1, "delay_seconds": 0}}).run(["u"])
    assert report.ok
    (first, bad), (second, good) = Through.heard
    assert (bad, good) == ("502_error", "")
    assert first != second


async def test_too_many_failures_end_the_run() -> None:
    Fetch.reset(lambda request: (500, ""))
    with pytest.raises(ToolFailedError, match="more than 3 requests failed"):
        await pipeline(max_failures=3, concurrency=1).run(f"u{number}" for number in range(100))
    assert sum(Fetch.asked.values()) < 10
    assert Fetch.opened == 0


async def test_an_error_status_can_be_accepted() -> None:
    Fetch.reset(lambda request: (403, "w"))
    accepting = Pipeline.of("fetch", "read", "keep", bricks=BRICKS)
    definition = accepting.definition
    steps = (definition.steps[0].model_copy(update={"accept_status": (403,)}), *definition.steps[1:])
    report = await Pipeline(definition.model_copy(update={"steps": steps}), BRICKS).run(["u"])
    assert report.ok


async def test_only_allowed_hosts_are_fetched() -> None:
    Fetch.reset(lambda request: (200, "w >http://shop.example/2 >http://evil.example/ >http://a.shop.example/"))
    report = await pipeline(allow_hosts=["shop.example"]).run(["http://shop.example/1"])
    assert {failure.url for failure in report.failures} == {"http://evil.example/"}
    assert report.failures[0].kind == "refused"
    assert set(Fetch.asked) == {"http://shop.example/1", "http://shop.example/2", "http://a.shop.example/"}
    report = await pipeline().run(["http://shop.example/1"], allow=lambda _url: False)
    assert report.failed == 1


async def test_cancelling_ends_at_once_and_closes_everything() -> None:
    reached = asyncio.Event()

    def answer(request: Request) -> tuple[int, str]:
        reached.set()
        return 200, "w"

    Fetch.reset(answer)
    task = asyncio.create_task(pipeline().run(f"u{number}" for number in range(1_000_000)))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert Fetch.opened == 0
    assert sum(Fetch.asked.values()) < 10_000


# Checked before anything runs


async def test_tools_that_do_not_stack_are_refused_with_pair_rule_and_reason() -> None:
    two = pipeline("fetch", "read", "keep", "other-fetch")
    report = two.check()
    assert not report.ok
    [verdict] = report.stack.conflicts
    assert (verdict.left, verdict.right) == ("fetch", "other-fetch")
    with pytest.raises(
        IncompatibleError, match=r"'fetch' and 'other-fetch' do not stack \(same_type\): .*both of type"
    ):
        await two.run(["u"])
    assert not Fetch.asked


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (("fetch", "keep"), "'fetch' gives a Page, but 'keep' takes a Record"),
        (("read", "keep"), "a pipeline begins with a Request, but 'read' takes a Page"),
        (("keep", "through", "fetch"), "a pipeline begins with a Request, but 'keep' takes a Record"),
    ],
)
async def test_types_that_do_not_meet_are_refused(steps: tuple[str, ...], message: str) -> None:
    wrong = pipeline(*steps)
    assert message in wrong.check().problems
    with pytest.raises(IncompatibleError, match=message):
        await wrong.run(["u"])


async def test_a_substitute_must_fit_too() -> None:
    wrong = pipeline(error_handling={"timeout": {"retry_with": "through"}})
    assert wrong.check().problems == (
        "'through' takes a Request and gives a Request, as no step does, so it cannot stand in for one",
    )
    assert pipeline(error_handling={"timeout": {"retry_with": "other-fetch"}}).check().ok


async def test_a_pipeline_stacks_as_the_kept_specs_say(tmp_path: Path) -> None:
    with_substitute = {"error_handling": {"timeout": {"retry_with": "other-fetch"}}}
    catalogue = open_catalogue(f"sqlite:///{tmp_path}/tools.db", Settings(data_dir=str(tmp_path), environ={}))
    asking = pipeline(specs_of=catalogue.specs_of, **with_substitute)
    catalogue.publish_many([BRICKS[name].spec for name in ("fetch", "read", "keep", "other-fetch")])
    assert asking.check().ok
    catalogue.publish(Fetch.spec.with_changes(incompatible_with=["read"]), replace=True)
    assert asking.check().problems == ("'fetch' and 'read' do not stack (refused): 'fetch' refuses 'read'",)
    with pytest.raises(IncompatibleError, match="'fetch' refuses 'read'"):
        await asking.run(["u"])
    assert not Fetch.asked
    catalogue.publish(Fetch.spec, replace=True)
    catalogue.publish(OtherFetch.spec.with_changes(incompatible_with=["keep"]), replace=True)
    assert asking.check().problems == (
        "'other-fetch' cannot stand in for 'fetch' (refused): 'other-fetch' refuses 'keep'",
    )
    catalogue.close()


async def test_what_the_catalogue_does_not_hold_is_refused_with_the_rule() -> None:
    kept = {"read": Read.spec}

    def specs_of(names: Iterable[str]) -> dict[str, ToolSpec]:
        return {name: kept[name] for name in names if name in kept}

    asking = pipeline(specs_of=specs_of)
    refusal = (
        "'fetch' and 'keep' are not in the catalogue (not_in_catalogue); 'tools add -f FILE' adds a tool, "
        "'tools add --samples' those that come along"
    )
    assert asking.check().problems == (refusal,)
    with pytest.raises(IncompatibleError, match="not_in_catalogue"):
        await asking.run(["u"])
    assert not Fetch.asked
    kept |= {"fetch": Fetch.spec, "keep": Keep.spec}
    assert asking.check().ok
    mended = pipeline(specs_of=specs_of, error_handling={"timeout": {"retry_with": "other-fetch"}})
    assert "'other-fetch' is not in the catalogue (not_in_catalogue)" in mended.check().problems[0]


@pytest.mark.parametrize(
    ("tool", "mode", "said"),
    [
        ("fetch", "sync", "the catalogue says that 'fetch' is sync, but its brick is async (execution_mode)"),
        ("read", "async", "the catalogue says that 'read' is async, but its brick is sync (execution_mode)"),
        ("keep", "async", "the catalogue says that 'keep' is async, but its brick is sync (execution_mode)"),
        ("fetch", "async", ""),
        ("read", "sync", ""),
        ("read", "local_code", ""),
    ],
)
async def test_the_mode_of_an_entry_is_checked_against_the_brick(tool: str, mode: str, said: str) -> None:
    kept = {name: BRICKS[name].spec for name in ("fetch", "read", "keep")}
    kept[tool] = kept[tool].with_changes(execution_mode=mode)
    report = pipeline(specs_of=lambda _names: kept).check()
    assert [problem.partition(";")[0] for problem in report.problems] == ([said] if said else [])


async def test_what_is_missing_is_told_before_the_run() -> None:
    needy = pipeline("needs-much", "read", "keep")
    errors = needy.check().errors
    assert [type(error) for error in errors] == [MissingDependencyError, MissingConfigError]
    assert "pip install much" in str(errors[0])
    assert "'A_KEY'" in str(errors[1])
    with pytest.raises(MissingDependencyError):
        await needy.run(["u"])
    assert pipeline(error_handling={"timeout": {"retry_with": "needs-much"}}).check().errors


def test_an_unknown_brick_is_not_found() -> None:
    with pytest.raises(ToolNotFoundError, match="'fetsh'; did you mean 'fetch'"):
        pipeline("fetsh", "read")


async def test_a_run_needs_somewhere_to_begin() -> None:
    with pytest.raises(InvalidArgumentsError, match="no address to begin with"):
        await pipeline().run()
    assert (await pipeline(start="u").run()).done == 1


# Taken up again


async def test_a_journal_remembers_what_is_done(tmp_path: Path) -> None:
    journal = tmp_path / "deep" / "run.journal"
    Fetch.reset(lambda request: (500, "") if request.url == "u1" and Fetch.asked["u1"] == 1 else (200, "w"))
    first = await pipeline().run(["u1", "u2"], journal=journal)
    assert (first.done, first.failed, first.skipped) == (1, 1, 0)
    second = await pipeline(concurrency=2).run(["u1", "u2", "u3"], journal=journal)
    assert (second.done, second.failed, second.skipped) == (2, 0, 1)
    assert Fetch.asked == {"u1": 2, "u2": 1, "u3": 1}


async def test_a_page_that_was_fetched_is_read_again_but_not_fetched_again(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    steps = ("fetch", "read-when-free", "keep")
    ReadWhenFree.reset()
    cut_short = asyncio.create_task(pipeline(*steps).run(["u1", "u2"], journal=journal))
    await until(lambda: ReadWhenFree.reading == {"u1", "u2"})
    cut_short.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut_short
    assert Fetch.asked == {"u1": 1, "u2": 1}
    ReadWhenFree.free.set()
    report = await pipeline(*steps).run(["u1", "u2"], journal=journal)
    assert report.done == 2
    assert Fetch.asked == {"u1": 1, "u2": 1}
    assert sorted(Keep.kept) == ["u1", "u2"]


async def test_a_journal_serves_one_pipeline(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    await pipeline().run(["u1"], journal=journal)
    with pytest.raises(ConflictError, match="belongs to another pipeline"):
        await pipeline("fetch", "read").run(["u1"], journal=journal)


async def test_a_journal_serves_one_run_at_a_time(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    steps = ("fetch", "read-when-free", "keep")
    ReadWhenFree.reset()
    first = asyncio.create_task(pipeline(*steps).run(["u1"], journal=journal))
    await until(lambda: ReadWhenFree.reading)
    with pytest.raises(ConflictError, match="in use by another run"):
        await pipeline(*steps).run(["u2"], journal=journal)
    ReadWhenFree.free.set()
    assert (await first).done == 1
    assert not Fetch.asked["u2"]


async def test_a_file_that_is_no_journal_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes\n" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        await pipeline().run(["u1"], journal=path)
    assert path.read_text() == "these are my notes\n" * 100


# As a tool


class NoReader:
    remote = False

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(request.tool != "read", "no reading")


@pytest.mark.parametrize("policy", [None, NoReader()])
async def test_the_steps_are_asked_for_and_recorded_as_any_call(policy: NoReader | None) -> None:
    audit = MemoryAudit()
    calls = Calls(ToolRegistry().get, authoriser=Authoriser(policy), recorder=Recorder(audit))
    run = pipeline().run(["https://site/1"], calls=calls)
    if policy is None:
        assert (await run).ok
    else:
        with pytest.raises(DeniedError, match="does not let an anonymous caller run 'read': no reading"):
            await run
        assert not Fetch.asked
    events = [(event.tool, event.action, event.outcome) for event in reversed(audit.events())]
    ended = "refused" if policy else "done"
    names = ("fetch", "read", "keep")
    assert sorted(events) == sorted((name, "run", outcome) for name in names for outcome in ("attempt", ended))


async def test_a_pipeline_is_a_tool() -> None:
    Fetch.reset(lambda request: (200, "a b") if request.url == "u1" else (404, ""))
    reading = pipeline("fetch", "read", name="read-words", description="Reads the words of pages.")
    registry = ToolRegistry()
    registry.register(reading)
    result = await registry.execute("read-words", {"start": ["u1", "u2"]})
    assert result.success, result.error
    assert result.data["records"] == [{"word": "a"}, {"word": "b"}]
    assert (result.data["done"], result.data["failed"]) == (1, 1)
    assert result.data["failures"][0]["kind"] == "404_error"
    named = reading.as_tool("words-of", "Other words.", tags=("web",), allow=lambda url: url == "u2")
    refused = await named.execute({"start": ["u1"]})
    assert refused["failures"][0]["kind"] == "refused"
    assert (named.name, named.spec.tags, named.spec.tool_type) == ("words-of", ("web",), "pipeline")
    assert named.spec.parameters["properties"]["start"]


async def test_collect_gives_the_items_or_raises() -> None:
    Fetch.reset(lambda request: (200, "a") if request.url == "u1" else (404, ""))
    reading = pipeline("fetch", "read")
    items = await reading.collect(["u1"])
    assert [item.data for item in items if isinstance(item, Record)] == [{"word": "a"}]
    with pytest.raises(ToolFailedError, match="1 requests failed, the first with: u2 answered 404"):
        await reading.collect(["u2"])


async def test_the_address_rules_in_force_hold_in_the_threads_of_a_brick() -> None:
    seen: list[tuple[str, AddressRules]] = []

    class Watching(Read):
        def open(self) -> None:
            seen.append(("open", AddressRules.in_force()))

        def process(self, item: Page, context: StepContext, /) -> Sequence[Record]:
            seen.append((threading.current_thread().name.rpartition("_")[0], AddressRules.in_force()))
            return super().process(item, context)

    class KeepWatching(Keep):
        def process_many(self, items: Sequence[Record], context: StepContext, /) -> Sequence[Stored]:
            seen.append(("batch", AddressRules.in_force()))
            return super().process_many(items, context)

    def specs_of(_names: Iterable[str]) -> dict[str, ToolSpec]:
        seen.append(("check", AddressRules.in_force()))
        return {name: brick.spec for name, brick in bricks.items()}

    bricks: dict[str, Any] = {**BRICKS, "read": Watching, "keep": KeepWatching}
    rules = AddressRules(public_only=True)
    with fence(rules):
        await Pipeline.of("fetch", "read", "keep", bricks=bricks, specs_of=specs_of).run(["https://example.com/u"])
    assert [where for where, _ in seen] == ["check", "open", "read", "batch"]
    assert all(held is rules for _, held in seen)
