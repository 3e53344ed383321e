"""``mcp``: the tools for an MCP client, over standard input and output."""

from __future__ import annotations

import typer

from toolcrib.surfaces.cli.invocation import StoreOption, example, invocation


def register(app: typer.Typer) -> None:
    app.command("mcp", epilog=example("mcp", "mcp --store sqlite:///tools.db"))(mcp)


def mcp(ctx: typer.Context, store: StoreOption = "") -> None:
    """Serve plugins and the catalogue's tools to an MCP client on standard input and output."""
    import asyncio

    from toolcrib.bootstrap import address_rules
    from toolcrib.core.addresses import fence
    from toolcrib.surfaces.serve import serve_mcp

    with invocation(ctx, store).system() as system, fence(address_rules(system.settings)):
        asyncio.run(serve_mcp(system))
