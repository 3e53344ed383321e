"""The tools of this machine: those of plugins, those that ship, and the samples to begin a catalogue with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.catalogue import Catalogue
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings, load_settings

if TYPE_CHECKING:
    from toolcrib.registry import ToolRegistry

_SUGGESTED_FROM = 2000


def find_plugins(settings: Settings) -> ToolRegistry:
    """The tools of installed packages and of the folders that the settings name."""
    from toolcrib.registry import ToolRegistry

    registry = ToolRegistry()
    registry.discover(folders=settings.plugin_folders)
    return registry


def plugin_folders() -> list[Path]:
    """The folders of plugins that the settings name now: where ``ToolRegistry.discover()`` looks."""
    return load_settings().plugin_folders


def known_names(catalogue: Catalogue) -> list[str]:
    """Names to suggest instead of one that does not exist."""
    return [entry.name for entry in catalogue.query(limit=_SUGGESTED_FROM).entries]


def shipped_names() -> list[str]:
    """The tools of the browser that ship."""
    from toolcrib.toolsets.browser import browser_specs

    return [spec.name for spec in browser_specs()]


def shipped_tool(name: str, chromium: str) -> Tool | None:
    """The tool that ships under this name, in a browser that is opened for the call."""
    from toolcrib.toolsets.browser import standalone_tool

    return standalone_tool(name, chromium=chromium) if name in shipped_names() else None


def sample_brick(name: str) -> ToolSpec | None:
    """The brick that ships under this name, as a tool."""
    from toolcrib.bootstrap.bricks import sample_bricks

    return next((spec for spec in sample_bricks() if spec.name == name and spec.binding), None)


def sample_specs() -> list[ToolSpec]:
    """The scraping tools and the browser tools."""
    from toolcrib.bootstrap.bricks import sample_bricks
    from toolcrib.toolsets.browser import browser_specs

    return list({spec.name: spec for spec in [*browser_specs(), *sample_bricks()]}.values())


def seed_samples(catalogue: Catalogue) -> int:
    """Publish the samples into an empty catalogue; how many that were."""
    return 0 if len(catalogue) else len(catalogue.publish_many(sample_specs(), principal="samples"))
