"""``mcp``: the tools for an MCP client, over standard input and output."""

from __future__ import annotations

import typer

from toolcrib.surfaces.cli.desk import StoreOption, desk_of, example


def register(app: typer.Typer) -> None:
    app.command("mcp", epilog=example("mcp", "mcp --store sqlite:///tools.db"))(mcp)


def mcp(ctx: typer.Context, store: StoreOption = "") -> None:
    """Serve plugins and the catalogue's tools to an MCP client on standard input and output."""
    import asyncio

    from toolcrib.bootstrap import address_rules, calls_of
    from toolcrib.core.addresses import fence
    from toolcrib.core.safety import SafetyLevel
    from toolcrib.registry import ToolRegistry
    from toolcrib.settings import load_settings
    from toolcrib.surfaces.cli.running import plugin_folders
    from toolcrib.surfaces.mcp import CatalogueToolbox, JoinedToolbox, serve_stdio

    settings = load_settings()
    with desk_of(ctx, store).catalogue() as catalogue, fence(address_rules(settings)):
        ceiling = SafetyLevel(settings.highest_safety_level)
        registry = ToolRegistry(highest_safety_level=ceiling, policy=catalogue.policy, audit=catalogue.audit)
        registry.discover(folders=plugin_folders(settings.plugins_dir))
        kept = CatalogueToolbox(catalogue, calls_of(catalogue, settings))
        asyncio.run(serve_stdio(JoinedToolbox(registry, kept)))
