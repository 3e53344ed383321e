"""One run: ask the model, run its calls, tell it what came of them, until it is done or a limit is reached."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcrib.agents.events import AgentEvent
from toolcrib.agents.tools import RunTools
from toolcrib.agents.transcript import CallRecord, Ended, Run, Step, Transcript
from toolcrib.calling.failures import is_cancellation
from toolcrib.calling.layers.agent_run import agent_run
from toolcrib.calling.threads import Job
from toolcrib.core.context import ToolContext
from toolcrib.core.counting import estimated_tokens
from toolcrib.core.errors import SettingsError, shown
from toolcrib.core.json import as_json, as_text
from toolcrib.core.masking import without_secrets
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.define.callables import is_async_callable
from toolcrib.formats import calls_of, read_call, render_result, together
from toolcrib.formats.saying import Tokens, appended, is_cut_off, text_of, tokens_of, told

if TYPE_CHECKING:
    from toolcrib.agents.agent import Agent, Task


class Ending(NamedTuple):
    ended: Ended
    reason: str
    result: ToolResult | None = None
    error: BaseException | None = None


_CUT_OFF = Ending("cut_off", "the provider cut the model's answer off before its end; allow it more tokens")


class Running:
    """``tell`` hears of it as it goes on."""

    def __init__(
        self,
        agent: Agent,
        task: Task,
        after: Run | None,
        context: ToolContext,
        tell: Callable[[AgentEvent], None] | None = None,
    ) -> None:
        self._agent = agent
        self._context = context
        self._tell = tell
        self._messages = _begun(agent, task, after)
        self._tools = RunTools(agent, self._began, self._ended, None if tell is None else self._heard)
        before = None if after is None else after.transcript
        self._transcript = Transcript(
            as_json(task), agent.format, agent.name, agent.system, prices=agent.prices, before=before
        )
        self._open: Any = None
        """What the model said whose calls have no answers yet."""

    async def to_the_end(self) -> Run:
        ending: Ending | None = None
        self._started = time.monotonic()
        clock = asyncio.timeout(self._agent.max_seconds)
        with agent_run():
            try:
                async with clock:
                    while ending is None:
                        ending = self._limit() or await self._step()
            except TimeoutError:
                if not clock.expired():
                    raise
                ending = self._out_of_time()
        return self._finished(ending)

    async def _step(self) -> Ending | None:
        """One message of the model, and its calls; None if it goes on."""
        definitions = self._tools.offered(self._agent)
        asked_at = time.monotonic()
        try:
            said = await self._asked(definitions)
        except (Exception, asyncio.CancelledError) as error:
            if is_cancellation(error):
                raise
            return _failed(error)
        messages = appended(said)
        has_calls, text, counted = bool(calls_of(said)[1]), text_of(messages), tokens_of(said)
        tokens = counted or self._estimated(definitions, messages)
        step = Step(text, as_json(messages), tokens, seconds=time.monotonic() - asked_at)
        if not has_calls and not text:
            if counted is not None:  # thoughts cost something too
                self._transcript.steps.append(step)
            return _nothing_said(said, messages)
        self._transcript.steps.append(step)
        self._messages += messages
        self._note("said", said=step)
        return await self._run_calls(said) if has_calls else _answered(said)

    async def _asked(self, definitions: list[dict[str, Any]]) -> Any:
        """What the model says. One that is a plain function works in a thread, so that limits hold and others go on."""
        ask = partial(self._agent.model, list(self._messages), definitions)
        if is_async_callable(self._agent.model):
            return await ask()
        worked, said = await Job(ask).outcome
        if not worked:
            raise said
        return await said if inspect.isawaitable(said) else said

    async def _run_calls(self, said: Any) -> Ending | None:
        self._open = said
        answers = await self._tools.execute_calls(said, context=self._context, at_once=self._agent.at_once)
        self._open = None
        self._messages += answers
        result = answers.terminal
        return None if result is None else Ending("terminal", _ended_by(result), result)

    def _estimated(self, definitions: Any, said: Any) -> Tokens:
        """For a model that does not tell of its tokens: what it was given, and what came."""
        given, came = as_text([self._messages, definitions]), as_text(said)
        return Tokens(estimated_tokens(given), estimated_tokens(came), estimated=True)

    # The limits

    def _limit(self) -> Ending | None:
        """What is used up, before the model is asked again: the calls that it made have been run."""
        agent, transcript = self._agent, self._transcript
        if len(transcript.steps) >= agent.max_steps:
            return self._limited("steps", f"the limit of {agent.max_steps} steps is reached")
        if agent.max_tokens is not None and (spent := transcript.usage.total) >= agent.max_tokens:
            about = "about " if transcript.usage.estimated else ""
            reason = f"the limit of {agent.max_tokens:,} tokens is reached, {about}{spent:,} are spent"
            return self._limited("tokens", reason)
        if agent.max_seconds is not None and time.monotonic() - self._started >= agent.max_seconds:
            return self._out_of_time()
        return None

    def _out_of_time(self) -> Ending:
        """What was running has been stopped. Each call gets an answer all the same: a provider wants one of each."""
        reason = f"the limit of {self._agent.max_seconds:g} seconds is reached"
        if self._open is not None:
            self._answer_open_calls(reason)
            for call in self._transcript.steps[-1].calls:
                if call.result is not None and call.result.is_terminal:
                    return Ending("terminal", _ended_by(call.result), call.result)
            reason += "; what was still running was stopped"
        return self._limited("seconds", reason)

    def _answer_open_calls(self, reason: str) -> None:
        speaker, calls = calls_of(self._open)
        made = list(self._transcript.steps[-1].calls)
        stopped = ToolResult.failure_result(f"the call was stopped: {reason} for the run", "cancelled")
        answers = []
        for call in calls:
            asked = read_call(speaker, call)
            record = next((each for each in made if each.call_id == asked.call_id), None)
            if record is not None:
                made.remove(record)  # some providers' calls share an id: their tool's name
            result = stopped if record is None or record.result is None else record.result
            answers.append(render_result(speaker, asked.call_id, result, name=asked.exported_name))
        self._messages += together(speaker, answers)

    def _limited(self, ended: Ended, reason: str) -> Ending:
        """A limit is no fault of the tools; but if the last calls all failed, that may be why."""
        results = [call.result for call in self._transcript.steps[-1].calls] if self._transcript.steps else []
        if results and all(result is not None and not result.success for result in results):
            reason += f"; the last call failed: {results[-1].error}" if results[-1] else ""
        return Ending(ended, f"the model had not come to an end: {reason}")

    # What is told and kept

    def _began(self, call: CallRecord) -> None:
        self._transcript.steps[-1].calls.append(call)
        self._note("call", call=call)

    def _ended(self, call: CallRecord) -> None:
        self._note("result", call=call)

    def _heard(self, call_id: str, event: ToolEvent) -> None:
        calls = self._transcript.steps[-1].calls
        call = next((each for each in calls if each.call_id == call_id and each.result is None), None)
        self._note("progress", call=call, event=event)

    def _note(self, kind: Any, **what: Any) -> None:
        if self._tell is not None:
            self._tell(AgentEvent(kind, len(self._transcript.steps), **what))

    def _finished(self, ending: Ending) -> Run:
        transcript, result = self._transcript, ending.result
        texts = [step.text for step in transcript.steps if step.text]
        answer: Any = texts[-1] if texts else None
        if result is not None and (result.success or result.data is not None):
            answer = result.data
        transcript.ended, transcript.reason, transcript.answer = ending.ended, ending.reason, answer
        return Run(answer, ending.ended, ending.reason, transcript, self._messages, result, ending.error)


def _begun(agent: Agent, task: Task, after: Run | None) -> list[Any]:
    """The conversation with the task at its end."""
    if after is not None and after.transcript.format != agent.format:
        raise SettingsError(
            f"the run to go on with speaks {after.transcript.format!r}, and the agent {agent.format!r}; "
            f"give the agent format={after.transcript.format!r}"
        )
    given: Any = [told(agent.format, task)] if isinstance(task, str) and task else task
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, Mapping) for each in given):
        raise SettingsError(f"a task is a text, or a list of messages, not {shown(task)}")
    system = [told(agent.format, agent.system, "system")] if agent.system else []
    return [*(system if after is None else after.messages), *given]


def _answered(said: Any) -> Ending:
    return _CUT_OFF if is_cut_off(said) else Ending("answer", "the model answered")


def _ended_by(result: ToolResult) -> str:
    name = result.metadata.get("tool", "")
    if result.success:
        return f"the tool {name!r} ended the run"
    return f"the tool {name!r} ended the run: {result.error or 'it failed'}"


def _failed(error: BaseException) -> Ending:
    kind, text = type(error).__name__, without_secrets(str(error))
    return Ending(
        "model_failed", f"the model failed: {kind}: {text}" if text else f"the model failed: {kind}", error=error
    )


def _nothing_said(said: Any, messages: list[Any]) -> Ending:
    if is_cut_off(said):
        return _CUT_OFF
    what = "neither a text nor a call" if messages or said in (None, "", []) else f"no assistant message: {shown(said)}"
    return Ending("nothing_said", f"the model answered {what}")
