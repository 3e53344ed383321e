"""What tests of tools and agents are written with: a scripted model, a registry that records, examples as tests.

Each name is loaded when it is first asked for: pytest imports this package wherever Toolcrib is installed.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.core.comparing import ANY, differences
    from toolcrib.testing.conversation import Conversation, ConversationRefusedError, Exchange
    from toolcrib.testing.examples import Outcome, Verdict, run_examples
    from toolcrib.testing.expecting import assert_calls
    from toolcrib.testing.model import Request, ScriptedModel, ScriptEndedError
    from toolcrib.testing.recording import RecordedCall, RecordingRegistry
    from toolcrib.testing.script import ScriptedCall, call
    from toolcrib.testing.shapes import SHAPES

__all__ = [
    "ANY", "SHAPES", "Conversation", "ConversationRefusedError", "Exchange", "Outcome", "RecordedCall",
    "RecordingRegistry", "Request", "ScriptEndedError", "ScriptedCall", "ScriptedModel", "Verdict", "assert_calls",
    "call", "differences", "run_examples",
]  # fmt: skip

_HOMES = {
    "ANY": "toolcrib.core.comparing",
    "differences": "toolcrib.core.comparing",
    "Conversation": "conversation",
    "ConversationRefusedError": "conversation",
    "Exchange": "conversation",
    "Outcome": "examples",
    "Verdict": "examples",
    "run_examples": "examples",
    "assert_calls": "expecting",
    "Request": "model",
    "ScriptedModel": "model",
    "ScriptEndedError": "model",
    "RecordedCall": "recording",
    "RecordingRegistry": "recording",
    "ScriptedCall": "script",
    "call": "script",
    "SHAPES": "shapes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'toolcrib.testing' has no attribute {name!r}")
    home = _HOMES[name] if "." in _HOMES[name] else f"toolcrib.testing.{_HOMES[name]}"
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
