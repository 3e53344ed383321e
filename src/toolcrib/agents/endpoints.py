"""Providers' endpoints as models: ``Agent(OpenAIModel("gpt-5"), tools)``.

Each uses its provider's own SDK, which finds the key in the environment and tries again what can help. What a model
returns is the whole response, so the tokens that the provider counted are known.
"""

from __future__ import annotations

import os
from typing import Any

from toolcrib.core.errors import MissingConfigError, MissingDependencyError
from toolcrib.formats.plain import plain


class _Endpoint:
    """``options`` are parameters of each request, such as ``temperature``."""

    format = ""

    def __init__(self, model: str, client: Any, options: dict[str, Any]) -> None:
        self.name = model
        self._client = client
        self._options = options

    async def close(self) -> None:
        """Close its connections. One that is not closed closes them when the program ends."""
        await self._client.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class OpenAIModel(_Endpoint):
    """A model behind OpenAI's Chat Completions, or a service that speaks as it does at ``base_url``.

    The key is ``api_key`` or OPENAI_API_KEY; a service at an address of its own may need none. Needs the extra
    ``openai``, unless a ``client`` is given.
    """

    format = "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(model, client or _openai(api_key, base_url), options)

    async def __call__(self, messages: list[Any], tools: list[dict[str, Any]]) -> Any:
        given = {"tools": tools} if tools else {}
        request = {"model": self.name, "messages": messages, **given, **self._options}
        return await self._client.chat.completions.create(**request)


class AnthropicModel(_Endpoint):
    """A model of Anthropic's, behind its Messages. The key is ``api_key`` or ANTHROPIC_API_KEY.

    ``max_tokens`` is the most that one message may have, which this provider wants said. Needs the extra
    ``anthropic``, unless a ``client`` is given.
    """

    format = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: Any = None,
        max_tokens: int = 8192,
        **options: Any,
    ) -> None:
        super().__init__(model, client or _anthropic(api_key, base_url), {"max_tokens": max_tokens, **options})

    async def __call__(self, messages: list[Any], tools: list[dict[str, Any]]) -> Any:
        systems = [message for message in messages if _is_system(message)]
        given: dict[str, Any] = {"tools": tools} if tools else {}
        if systems:
            given["system"] = "\n\n".join(str(message["content"]) for message in systems)
        rest = [message for message in messages if not _is_system(message)]
        return await self._client.messages.create(model=self.name, messages=rest, **given, **self._options)


def _is_system(message: Any) -> bool:
    return (plain(message) or {}).get("role") == "system"


def _openai(api_key: str | None, base_url: str | None) -> Any:
    try:
        from openai import AsyncOpenAI
    except ModuleNotFoundError:
        raise MissingDependencyError("OpenAI's SDK", extra="openai") from None
    if not (key := api_key or os.environ.get("OPENAI_API_KEY")):
        if not (base_url or os.environ.get("OPENAI_BASE_URL")):
            raise _no_key("OPENAI_API_KEY")
        key = "none"
    return AsyncOpenAI(api_key=key, base_url=base_url)


def _anthropic(api_key: str | None, base_url: str | None) -> Any:
    try:
        from anthropic import AsyncAnthropic
    except ModuleNotFoundError:
        raise MissingDependencyError("Anthropic's SDK", extra="anthropic") from None
    known = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    if not api_key and not any(os.environ.get(name) for name in known):
        raise _no_key("ANTHROPIC_API_KEY")
    return AsyncAnthropic(api_key=api_key, base_url=base_url)


def _no_key(variable: str) -> MissingConfigError:
    return MissingConfigError(f"there is no key for the model; set {variable}, or give api_key=...")
