"""Every error Toolcrib raises, in one tree; what only one door or toolset raises is a branch of it, in its room.

    ToolcribError
    ├── ToolNotFoundError (KeyError)        no tool of that name
    │   └── VersionNotFoundError            ... no such version of it
    ├── BundleNotFoundError                 the tool or the digest has no code here
    ├── ToolExistsError                     the name is taken
    ├── ToolValidationError (ValueError)    a definition is wrong
    │   ├── InvalidNameError                ... its name
    │   ├── InvalidSchemaError              ... one of its JSON Schemas
    │   ├── UnknownPolicyRuleError          ... it names a policy rule that nobody serves
    │   ├── BreakingChangeError             ... an update would break callers
    │   ├── ExportError                     ... a provider cannot take it
    │   └── StoreEntryError                 ... what the store holds of it
    ├── InvalidArgumentsError (ValueError)  a call's arguments do not fit the tool
    ├── InvalidQueryError (ValueError)      a filter is not in the filter language
    │   └── QueryBudgetError                ... or asks for more work than a query may
    ├── InvalidBundleError (ValueError)     an uploaded archive is not a tool bundle
    ├── SettingsError (ValueError)          a setting has a value it cannot have
    ├── DeniedError (PermissionError)       a rule says no
    │   ├── ApprovalRequiredError           ... until somebody approves
    │   └── UnauthenticatedError            ... until the caller says who they are
    ├── ToolTimeoutError (TimeoutError)     the deadline passed
    ├── ToolFailedError                     the tool itself raised
    ├── InvalidOutputError                  the tool returned what its schema forbids
    ├── ToolBusyError                       too many calls of the tool are still running
    ├── RateLimitedError                    too many calls or requests in too short a time
    │   └── SessionLimitError               ... or so many sessions as a caller may have
    ├── SessionNotFoundError                no session of that name
    ├── SessionEndedError                   the session ended while a call of it was under way
    ├── RepeatedCallError                   the same call again and again
    ├── BudgetSpentError                    an agent's run has used up what it was given
    ├── LayerFailedError                    a layer around the call broke; the tool did not
    ├── IncompatibleError                   tools that do not fit together
    ├── ConflictError                       somebody else changed it first
    │   └── ToolInUseError                  others name the tool, so it stays
    ├── MissingDependencyError (ImportError)  an optional package is not installed
    ├── MissingConfigError                  a required key is not configured
    └── UnavailableError                    something we depend on did not answer
        ├── StoreError                      ... the store
        │   ├── StorageFullError            ... there is no room left to write
        │   ├── StorageMissingError         ... the bucket is not there
        │   ├── StorageRefusedError         ... it does not take our keys
        │   └── StoreEntryError             ... something in it is wrong
        ├── PolicyUnavailableError          ... the policy service
        ├── CircuitOpenError                ... the tool, which failed so often that it is left alone
        └── OverloadedError                 ... too many others are asking

Each class has a stable ``code`` for programs, says whether trying again can help, and has the ``answer`` that each door
gives: a new error is a new class here, and every door knows it.
"""

from __future__ import annotations

import difflib
import errno
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

RETRY_AFTER: Final = "retry_after_seconds"
"""The fact that says how long to wait before trying again, where that is known."""


class Exit(IntEnum):
    """How a command ends."""

    DONE = 0
    NO = 1
    USAGE = 2
    NOT_FOUND = 3
    INVALID = 4
    REFUSED = 5
    FAILED = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """How each door tells of one kind of error: HTTP status, JSON-RPC code, exit status, and the kind's title.

    ``after_start`` says that the tool ran: the call was answered, though not as its caller hoped.
    """

    http: int
    rpc: int
    exit: Exit
    title: str
    after_start: bool = False


class ToolcribError(Exception):
    """The base of the tree. ``str(error)`` is one plain sentence for a person."""

    code: ClassVar[str] = "error"
    answer: ClassVar[Answer] = Answer(500, -32603, Exit.FAILED, "Internal error")
    retryable: ClassVar[bool] = False
    way_out: ClassVar[str] = ""
    """What a model is told to do about it, beside the sentence, if that does not say."""
    facts: Mapping[str, Any] = MappingProxyType({})
    """Facts for programs beside the sentence: they go into the metadata of a call's result."""

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else self.code

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Back from another process as it was: what ``__init__`` takes is another matter."""
        return _as_it_was, (type(self), self.args), self.__dict__


def _as_it_was(kind: type[ToolcribError], args: tuple[Any, ...]) -> ToolcribError:
    error = kind.__new__(kind)
    error.args = args
    return error


class ToolNotFoundError(ToolcribError, KeyError):
    """``near`` are the names that are close to it, of which the sentence tells the first."""

    code = "tool_not_found"
    answer = Answer(404, -32602, Exit.NOT_FOUND, "Tool not found")
    way_out = "Call only tools that you were given, by their exact names."

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.near = closest(str(name)[:_LONG_NAME], known, _MOST_NEAR)
        super().__init__(f"no tool is called {name!r:.140}{_meaning(self.near)}")
        self.name = name


class VersionNotFoundError(ToolNotFoundError):
    """``known`` are the versions that can be read, ``number`` is none of them."""

    code = "version_not_found"
    answer = Answer(404, -32602, Exit.NOT_FOUND, "Version not found")

    def __init__(self, name: str, number: int, known: Sequence[int]) -> None:
        first, last = min(known), max(known)
        there = f"only {first}" if first == last else f"{first} to {last}"
        why = "; it was deleted there" if first < number < last else f"; it has {there}"
        ToolcribError.__init__(self, f"{name!r} has no version {number}{why}")
        self.name, self.near = name, []


class BundleNotFoundError(ToolcribError):
    code = "bundle_not_found"
    answer = Answer(404, -32602, Exit.NOT_FOUND, "Bundle not found")


class ToolExistsError(ToolcribError):
    code = "tool_exists"
    answer = Answer(409, -32009, Exit.INVALID, "Tool exists already")

    def __init__(self, name: str, hint: str = "choose another name or replace it") -> None:
        super().__init__(f"a tool called {name!r} exists already; {hint}")
        self.name = name


class ToolValidationError(ToolcribError, ValueError):
    code = "invalid_tool"
    answer = Answer(400, -32602, Exit.INVALID, "Invalid tool")


class InvalidNameError(ToolValidationError):
    code = "invalid_name"
    answer = Answer(400, -32602, Exit.INVALID, "Invalid tool name")


class UnknownPolicyRuleError(ToolValidationError):
    code = "unknown_policy_rule"
    answer = Answer(400, -32602, Exit.INVALID, "Unknown policy rule")

    def __init__(self, name: str, rules: Iterable[str]) -> None:
        super().__init__(
            f"{name!r} names {unserved_rules(rules)}; name one that the policy knows, or set "
            "TOOLCRIB_UNKNOWN_POLICY_RULES=warn"
        )


def unserved_rules(rules: Iterable[str]) -> str:
    """What is said of policy rules that nobody serves."""
    return f"a policy rule that nobody serves: {', '.join(f'{rule!a:.200}' for rule in rules)}"


class InvalidSchemaError(ToolValidationError):
    code = "invalid_schema"
    answer = Answer(400, -32602, Exit.INVALID, "Invalid JSON Schema")


class BreakingChangeError(ToolValidationError):
    """``changes`` lists what would break a caller."""

    code = "breaking_change"
    answer = Answer(409, -32009, Exit.INVALID, "Breaking change")

    def __init__(self, name: str, changes: Sequence[str]) -> None:
        super().__init__(
            f"the update of {name!r} would break its callers ({'; '.join(changes)}); "
            "raise the major version, or force it"
        )
        self.name = name
        self.changes = tuple(changes)


class ExportError(ToolValidationError):
    code = "export_failed"
    answer = Answer(400, -32602, Exit.INVALID, "Not exportable to this format")


class InvalidArgumentsError(ToolcribError, ValueError):
    """``argument`` is the (first) offending argument's name, dotted for nested ones."""

    code = "invalid_arguments"
    answer = Answer(400, -32602, Exit.INVALID, "Invalid arguments")
    wrong: Mapping[str, str] = MappingProxyType({})
    """A complaint for each argument that is wrong, by its (dotted) name."""

    def __init__(self, message: str, *, tool: str = "", argument: str = "") -> None:
        super().__init__(message)
        self.tool = tool
        self.argument = argument

    @classmethod
    def of(cls, wrong: Mapping[str, str], *, tool: str) -> Self:
        """All that is wrong, in one answer: a complaint for each argument."""
        told = list(itertools.islice(wrong.items(), _MOST_TOLD))
        message = told[0][1]
        if len(wrong) > 1:
            listed = "; ".join(f"({number}) {complaint}" for number, (_, complaint) in enumerate(told, 1))
            rest = f"; and {len(wrong) - len(told)} more" if len(wrong) > len(told) else ""
            message = f"{len(wrong)} arguments are wrong: {listed}{rest}"
        error = cls(message, tool=tool, argument=told[0][0])
        error.wrong = dict(wrong)
        if len(wrong) > 1:
            error.facts = {"arguments": dict(told)}
        return error


_MOST_TOLD = 20
"""Of the arguments that are wrong, so many are told of."""


class InvalidQueryError(ToolcribError, ValueError):
    code = "invalid_query"
    answer = Answer(400, -32602, Exit.INVALID, "Invalid query")


class QueryBudgetError(InvalidQueryError):
    code = "query_budget"
    answer = Answer(400, -32602, Exit.INVALID, "Query asks for too much")


class InvalidBundleError(ToolcribError, ValueError):
    code = "invalid_bundle"
    answer = Answer(400, -32602, Exit.INVALID, "Invalid bundle")


class SettingsError(ToolcribError, ValueError):
    code = "invalid_setting"
    answer = Answer(500, -32603, Exit.INVALID, "Invalid setting")


class DeniedError(ToolcribError, PermissionError):
    """``rule`` names what refused: a safety ceiling, a role, a policy."""

    code = "denied"
    answer = Answer(403, -32003, Exit.REFUSED, "Refused")
    way_out = "Do not call it again; go on without it or tell the user."

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule


class ApprovalRequiredError(DeniedError):
    code = "approval_required"
    answer = Answer(403, -32003, Exit.REFUSED, "Approval required")
    way_out = "Nothing was run; ask the user to approve it, or go on without it."


class UnauthenticatedError(DeniedError):
    code = "unauthenticated"
    answer = Answer(401, -32001, Exit.REFUSED, "Not authenticated")


class ToolTimeoutError(ToolcribError, TimeoutError):
    """``still_running`` is true if nobody could stop the code: a thread.

    ``ended_after`` is how long it took if it blocked the event loop or caught its cancellation: its result is gone.
    """

    code = "timeout"
    answer = Answer(504, -32008, Exit.FAILED, "Tool passed its deadline", after_start=True)
    way_out = "Call it again with less to do, or go on without it."
    retryable = True

    def __init__(self, name: str, seconds: float, *, still_running: bool = False, ended_after: float = 0.0) -> None:
        fate = "its thread is still running" if still_running else "it was stopped"
        if ended_after:
            fate = f"it could not be stopped and ended by itself after {ended_after:.3g} s"
        super().__init__(f"tool {name!r} passed its deadline of {seconds:g} s; {fate}")
        self.name = name
        self.seconds = seconds
        self.still_running = still_running
        self.ended_after = ended_after


class ToolFailedError(ToolcribError):
    """The tool raised; ``__cause__`` is what it raised, if that could be carried over."""

    code = "tool_failed"
    answer = Answer(502, -32010, Exit.FAILED, "Tool failed", after_start=True)

    def __init__(self, name: str, reason: str, *, cause_type: str = "") -> None:
        super().__init__(f"tool {name!r} failed: {reason}")
        self.name = name
        self.reason = reason
        self.cause_type = cause_type


class InvalidOutputError(ToolcribError):
    code = "invalid_output"
    answer = Answer(502, -32010, Exit.FAILED, "Tool returned invalid output", after_start=True)
    way_out = "The tool is at fault, not your call; go on without it."


class ToolBusyError(ToolcribError):
    code = "tool_busy"
    answer = Answer(503, -32011, Exit.FAILED, "Tool is busy")
    way_out = "Try again later."
    retryable = True


class RateLimitedError(ToolcribError):
    """``seconds`` is how long to wait."""

    code = "rate_limited"
    answer = Answer(429, -32029, Exit.REFUSED, "Too many requests")
    way_out = "Try again later."
    retryable = True

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.facts = {RETRY_AFTER: seconds}


class SessionLimitError(RateLimitedError):
    code = "session_limit"
    answer = Answer(429, -32029, Exit.REFUSED, "Too many sessions")
    way_out = "End a session that is no longer needed."


class SessionNotFoundError(ToolcribError):
    code = "session_not_found"
    answer = Answer(404, -32602, Exit.NOT_FOUND, "Session not found")


class SessionEndedError(ToolcribError):
    code = "session_ended"
    answer = Answer(409, -32009, Exit.FAILED, "Session ended", after_start=True)
    way_out = "The next call of the session opens a new, empty one."


class RepeatedCallError(ToolcribError):
    code = "repeated_call"
    answer = Answer(409, -32009, Exit.REFUSED, "The same call again and again")


class BudgetSpentError(ToolcribError):
    """``limit`` names what is used up: calls, seconds or tokens."""

    code = "budget_spent"
    answer = Answer(403, -32003, Exit.REFUSED, "Budget is spent")

    def __init__(self, message: str, *, limit: str, spent: float, of: float) -> None:
        super().__init__(message)
        self.facts = {"limit": limit, "spent": spent, "of": of}


class LayerFailedError(ToolcribError):
    """``layer`` says what broke: the tool's code did not, and perhaps it never ran."""

    code = "layer_failed"
    answer = Answer(500, -32603, Exit.FAILED, "A layer failed")
    way_out = "It is no fault of your call; go on without the tool or tell the user."

    def __init__(self, layer: str, tool: str, reason: str) -> None:
        super().__init__(f"{layer} around the tool {tool!r} failed, the tool itself did not: {reason}")
        self.tool = tool


class IncompatibleError(ToolcribError, ValueError):
    code = "incompatible"
    answer = Answer(409, -32009, Exit.NO, "Tools do not fit together")


class ConflictError(ToolcribError):
    code = "conflict"
    answer = Answer(409, -32009, Exit.REFUSED, "Changed by somebody else")
    retryable = True


class ToolInUseError(ConflictError):
    code = "tool_in_use"
    answer = Answer(409, -32009, Exit.REFUSED, "Tool is in use")
    retryable = False

    def __init__(self, name: str, users: Sequence[str], hidden: int = 0) -> None:
        """``hidden`` is how many more there are that the caller may not see."""
        named = [*map(repr, users), *(["tools that you may not see"] if hidden else [])]
        super().__init__(f"{name!r} is named by {', '.join(named)}; remove those first, or force it")
        self.name = name
        self.users = tuple(users)


class MissingDependencyError(ToolcribError, ImportError):
    code = "missing_dependency"
    answer = Answer(501, -32603, Exit.FAILED, "Optional package not installed")
    way_out = "Only who runs the tools can mend this; tell the user."

    def __init__(self, what: str, install: str = "", *, extra: str = "") -> None:
        """``extra`` is the extra of Toolcrib that brings it; ``install`` is the command for what no extra brings."""
        self.install = install or f"pip install '.[{extra}]'"
        where = " in Toolcrib's folder" if extra else ""
        super().__init__(f"{what} is not installed; run{where}: {self.install}")


class MissingConfigError(ToolcribError):
    code = "missing_config"
    answer = Answer(409, -32009, Exit.INVALID, "Required configuration missing")
    way_out = "Only who runs the tools can mend this; tell the user."


class UnavailableError(ToolcribError):
    code = "unavailable"
    answer = Answer(503, -32011, Exit.FAILED, "Service unavailable")
    way_out = "Try again in a moment."
    retryable = True


class StoreError(UnavailableError):
    code = "store_failed"
    answer = Answer(503, -32011, Exit.FAILED, "Store unavailable")


class StorageFullError(StoreError):
    code = "storage_full"
    answer = Answer(507, -32011, Exit.FAILED, "No room left")


class StorageMissingError(StoreError):
    code = "storage_missing"
    answer = Answer(503, -32011, Exit.FAILED, "Storage is not there")


class StorageRefusedError(StoreError):
    code = "storage_refused"
    answer = Answer(503, -32011, Exit.FAILED, "Storage refuses us")


class StoreEntryError(StoreError, ToolValidationError):
    """What somebody wrote into the store by hand is wrong: no caller's fault, and trying again does not help."""

    code = "store_entry"
    answer = Answer(500, -32603, Exit.INVALID, "Store holds a wrong entry")
    retryable = False


class PolicyUnavailableError(UnavailableError):
    code = "policy_unavailable"
    answer = Answer(503, -32011, Exit.REFUSED, "Policy service unavailable")


class CircuitOpenError(UnavailableError):
    """``seconds`` is how long the tool is left alone."""

    code = "circuit_open"
    answer = Answer(503, -32011, Exit.FAILED, "Tool is left alone after failures")

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.facts = {RETRY_AFTER: seconds}


class OverloadedError(UnavailableError):
    code = "overloaded"
    answer = Answer(503, -32011, Exit.FAILED, "Too much is asked at once")


def disk_error(what: str, error: OSError) -> StoreError:
    """What to tell of a disk that fails: ``what`` and why; StorageFullError if there is no room left on it."""
    kind = StorageFullError if error.errno in {errno.ENOSPC, errno.EDQUOT} else StoreError
    return kind(f"{what}: {error.strerror or error}")


_MANY_NAMES, _LONG_NAME, _MOST_NEAR = 500, 128, 5
"""To compare two names takes the product of their lengths, and strangers choose them."""


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` if something in ``known`` is close to ``wanted``."""
    return _meaning(closest(wanted, known, 1))


def _meaning(close: Sequence[str]) -> str:
    return f"; did you mean {close[0]!r}?" if close else ""


def closest(wanted: str, known: Iterable[str], most: int) -> list[str]:
    """What in ``known`` is close to ``wanted``: what differs in its case alone, then what is spelled much like it."""
    if len(wanted) > _LONG_NAME:
        return []
    folded = wanted.casefold()
    names = [name for name in known if len(name) <= _LONG_NAME]
    same = [name for name in names if name.casefold() == folded]
    alike = difflib.get_close_matches(wanted, names[:_MANY_NAMES], n=most) if len(same) < most else []
    return list(dict.fromkeys([*same, *alike]))[:most]


def shown(value: object) -> str:
    """A value as a sentence can hold it: cut if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


UNEXPECTED: Final = ToolcribError("something went wrong in Toolcrib; its log has the reason")
"""What is told of an exception that is not of the tree: a defect, whose text stays in the log."""


def can_retry(error: ToolcribError) -> bool:
    """Whether trying again can help: what is known of this one error counts, else its kind."""
    return bool(error.facts.get("retryable", error.retryable))


def kind_for_code(code: str | None) -> type[ToolcribError] | None:
    """The kind of error that a result's ``error_code`` stands for; None for the code of a tool's own."""
    kinds: list[type[ToolcribError]] = [ToolcribError]
    for kind in kinds:
        if kind.code == code:
            return kind
        kinds += kind.__subclasses__()
    return None


def _show_public_names() -> None:
    """In tracebacks, in ``repr`` and in pickles an error is called what its users import: ``toolcrib.StoreError``."""
    for kind in list(globals().values()):
        if isinstance(kind, type) and issubclass(kind, ToolcribError):
            kind.__module__ = "toolcrib"


_show_public_names()
