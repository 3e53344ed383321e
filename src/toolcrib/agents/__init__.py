"""A small loop that uses tools: the model reasons, its calls are run, it reads what came of them, until it is done.

    run = await Agent(OpenAIModel("gpt-5"), [weather]).run("How is the weather in Paris?")
    print(run.answer, run.ended, run.usage.total)

``agent.stream(task)`` tells of it as it goes; ``run.transcript`` can be kept, and played again without a model.
"""

from toolcrib.agents.agent import Agent
from toolcrib.agents.endpoints import AnthropicModel, OpenAIModel
from toolcrib.agents.events import AgentEvent
from toolcrib.agents.replaying import Replay, replay
from toolcrib.agents.transcript import CallRecord, Ended, Prices, Run, Step, Transcript

__all__ = [
    "Agent", "AgentEvent", "AnthropicModel", "CallRecord", "Ended", "OpenAIModel", "Prices", "Replay", "Run", "Step",
    "Transcript", "replay",
]  # fmt: skip
