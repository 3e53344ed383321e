"""Who decides on changes and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.errors import SettingsError
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.ports import Policy


def open_policy(settings: Settings) -> tuple[Policy | None, Callable[[], None]]:
    """Who decides, None if everything is allowed, and what closes it."""
    if settings.policy == "allow":
        return None, lambda: None
    if settings.policy == "cedar":
        from toolcrib.adapters.policies.cedar import CedarPolicy

        path = Path(_needed(settings, "policy_file", settings.policy_file)).expanduser()
        return CedarPolicy(path, roles=_roles(settings.policy_roles)), lambda: None
    from toolcrib.adapters.policies.caching import CachingPolicy
    from toolcrib.adapters.policies.webhook import WebhookPolicy

    webhook = WebhookPolicy(
        _needed(settings, "policy_webhook_url", settings.policy_webhook_url),
        secret=settings.policy_webhook_secret,
        seconds=settings.policy_webhook_timeout,
        fail_open=settings.policy_webhook_open,
    )
    if settings.policy_webhook_cache:
        return CachingPolicy(webhook, seconds=settings.policy_webhook_cache), webhook.close
    return webhook, webhook.close


def _needed(settings: Settings, name: str, value: str) -> str:
    if not value:
        raise SettingsError(f"policy {settings.policy!r} needs the setting {name!r}; set TOOLCRIB_{name.upper()}")
    return value


def _roles(given: Iterable[str]) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {}
    for text in given:
        principal, equals, role = (part.strip() for part in text.partition("="))
        if not (principal and equals and role):
            raise SettingsError(f"policy_roles holds {text!r}; write principal=role")
        roles.setdefault(principal, []).append(role)
    return roles
