"""Every error Toolcrib raises, in one tree.

    ToolcribError
    ├── ToolNotFoundError (KeyError)        no tool of that name
    ├── ToolExistsError                     the name is taken
    ├── ToolValidationError (ValueError)    a definition is wrong
    │   ├── InvalidNameError                ... its name
    │   ├── InvalidSchemaError              ... one of its JSON Schemas
    │   ├── BreakingChangeError             ... an update would break callers
    │   └── ExportError                     ... a provider cannot take it
    ├── InvalidArgumentsError (ValueError)  a call's arguments do not fit the tool
    ├── InvalidQueryError (ValueError)      a filter is not in the filter language
    ├── InvalidBundleError (ValueError)     an uploaded archive is not a tool bundle
    ├── SettingsError (ValueError)          a setting has a value it cannot have
    ├── DeniedError (PermissionError)       a rule says no
    │   ├── ApprovalRequiredError           ... until somebody approves
    │   └── UnauthenticatedError            ... until the caller says who they are
    ├── ToolTimeoutError (TimeoutError)     the deadline passed
    ├── ToolFailedError                     the tool itself raised
    ├── InvalidOutputError                  the tool returned what its schema forbids
    ├── ToolBusyError                       too many calls of the tool are still running
    ├── IncompatibleError                   tools that do not fit together
    ├── ConflictError                       somebody else changed it first
    │   └── ToolInUseError                  others name the tool, so it stays
    ├── MissingDependencyError (ImportError)  an optional package is not installed
    ├── MissingConfigError                  a required key is not configured
    └── UnavailableError                    something we depend on did not answer
        ├── StoreError                      ... the store
        └── PolicyUnavailableError          ... the policy service

Each class has a stable ``code`` for programs and says whether trying again can help.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar


class ToolcribError(Exception):
    """The base of the tree. ``str(error)`` is one plain sentence for a person."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else self.code

    def __str__(self) -> str:
        return self.message


class ToolNotFoundError(ToolcribError, KeyError):
    code = "tool_not_found"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"no tool is called {name!r:.140}{did_you_mean(str(name)[:128], known)}")
        self.name = name


class ToolExistsError(ToolcribError):
    code = "tool_exists"

    def __init__(self, name: str, hint: str = "choose another name or replace it") -> None:
        super().__init__(f"a tool called {name!r} exists already; {hint}")
        self.name = name


class ToolValidationError(ToolcribError, ValueError):
    code = "invalid_tool"


class InvalidNameError(ToolValidationError):
    code = "invalid_name"


class InvalidSchemaError(ToolValidationError):
    code = "invalid_schema"


class BreakingChangeError(ToolValidationError):
    """``changes`` lists what would break a caller."""

    code = "breaking_change"

    def __init__(self, name: str, changes: Sequence[str]) -> None:
        super().__init__(
            f"the update of {name!r} would break its callers ({'; '.join(changes)}); "
            "raise the major version, or force it"
        )
        self.name = name
        self.changes = tuple(changes)


class ExportError(ToolValidationError):
    code = "export_failed"


class InvalidArgumentsError(ToolcribError, ValueError):
    """``argument`` is the offending argument's name, dotted for nested ones."""

    code = "invalid_arguments"

    def __init__(self, message: str, *, tool: str = "", argument: str = "") -> None:
        super().__init__(message)
        self.tool = tool
        self.argument = argument


class InvalidQueryError(ToolcribError, ValueError):
    code = "invalid_query"


class InvalidBundleError(ToolcribError, ValueError):
    code = "invalid_bundle"


class SettingsError(ToolcribError, ValueError):
    code = "invalid_setting"


class DeniedError(ToolcribError, PermissionError):
    """``rule`` names what refused: a safety ceiling, a role, a policy."""

    code = "denied"

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule


class ApprovalRequiredError(DeniedError):
    code = "approval_required"


class UnauthenticatedError(DeniedError):
    code = "unauthenticated"


class ToolTimeoutError(ToolcribError, TimeoutError):
    """``still_running`` is true where nobody could stop the code: a thread."""

    code = "timeout"
    retryable = True

    def __init__(self, name: str, seconds: float, *, still_running: bool = False) -> None:
        fate = "its thread is still running" if still_running else "it was stopped"
        super().__init__(f"tool {name!r} passed its deadline of {seconds:g} s; {fate}")
        self.name = name
        self.seconds = seconds
        self.still_running = still_running


class ToolFailedError(ToolcribError):
    """The tool raised; ``__cause__`` is what it raised, where that could be carried over."""

    code = "tool_failed"

    def __init__(self, name: str, reason: str, *, cause_type: str = "") -> None:
        super().__init__(f"tool {name!r} failed: {reason}")
        self.name = name
        self.reason = reason
        self.cause_type = cause_type


class InvalidOutputError(ToolcribError):
    code = "invalid_output"


class ToolBusyError(ToolcribError):
    code = "tool_busy"
    retryable = True


class IncompatibleError(ToolcribError, ValueError):
    code = "incompatible"


class ConflictError(ToolcribError):
    code = "conflict"
    retryable = True


class ToolInUseError(ConflictError):
    code = "tool_in_use"
    retryable = False

    def __init__(self, name: str, users: Sequence[str]) -> None:
        super().__init__(f"{name!r} is named by {', '.join(map(repr, users))}; remove those first, or force it")
        self.name = name
        self.users = tuple(users)


class MissingDependencyError(ToolcribError, ImportError):
    code = "missing_dependency"

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f"{what} is not installed; run: {install}")
        self.install = install


class MissingConfigError(ToolcribError):
    code = "missing_config"


class UnavailableError(ToolcribError):
    code = "unavailable"
    retryable = True


class StoreError(UnavailableError):
    code = "store_failed"


class PolicyUnavailableError(UnavailableError):
    code = "policy_unavailable"


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` where something in ``known`` is close to ``wanted``."""
    close = difflib.get_close_matches(wanted, list(known)[:2000], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
