"""Behaviour around calls, without touching tools: ``registry.use(retry())``.

=====================  ==============================================================================
``around``             hooks before and after a call, and at its error
``retry``              try again what can help and does no harm
``cache``              keep the answers of ``cacheable`` tools
``rate_limit``         so many calls in so much time
``concurrency_limit``  so many calls at the same time
``circuit_breaker``    leave a tool alone that fails again and again
``repeat_breaker``     stop the same call again and again
``budget``             what a run of an agent may spend: calls, seconds, tokens
``logged``             calls in a log, with the secrets taken out by ``redact``
``agent_run``          says which calls are one run, for ``budget`` and ``repeat_breaker``
=====================  ==============================================================================

A layer of one's own is a function from runner to runner.
"""

from toolcrib.calling.layers import Layer
from toolcrib.calling.layers.agent_run import AgentRun, agent_run
from toolcrib.calling.layers.around import around
from toolcrib.calling.layers.budget import Budget, Spent, budget
from toolcrib.calling.layers.cache import Cache, cache
from toolcrib.calling.layers.circuit_breaker import circuit_breaker
from toolcrib.calling.layers.concurrency_limit import concurrency_limit
from toolcrib.calling.layers.logged import logged, redact
from toolcrib.calling.layers.rate_limit import rate_limit
from toolcrib.calling.layers.repeat_breaker import repeat_breaker
from toolcrib.calling.layers.retry import retry
from toolcrib.core.masking import Redaction
from toolcrib.core.tool import Runner

__all__ = [
    "AgentRun",
    "Budget",
    "Cache",
    "Layer",
    "Redaction",
    "Runner",
    "Spent",
    "agent_run",
    "around",
    "budget",
    "cache",
    "circuit_breaker",
    "concurrency_limit",
    "logged",
    "rate_limit",
    "redact",
    "repeat_breaker",
    "retry",
]
