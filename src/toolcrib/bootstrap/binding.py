"""How a catalogued spec becomes runnable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolcrib.adapters.runners.bound import BoundRunner, Credentials, bound_tool, described_tool
from toolcrib.adapters.runners.fenced import fenced_tool
from toolcrib.adapters.runners.placed import placed_tool
from toolcrib.adapters.runners.python_reference import listed_references, python_tool
from toolcrib.adapters.runners.system_function import function_tool
from toolcrib.bootstrap.browsers import Browsers
from toolcrib.bootstrap.local import shipped_names
from toolcrib.calling.blocking import look_up
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import DeniedError, ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.http import HttpCaller
    from toolcrib.adapters.runners.bundle import BundleRunner
    from toolcrib.adapters.runners.command import CommandRunner
    from toolcrib.adapters.runners.unpacking import BundleCache
    from toolcrib.stacking.brick import AnyBrick


def address_rules(settings: Settings, *, own: bool = False) -> AddressRules:
    """Who may be reached by tools: whatever is public, but for what the settings add and take away.

    ``own`` is for what a person does at the command line: everything may be reached but what the settings deny.
    """
    if own:
        return AddressRules(deny=settings.denied_addresses)
    return AddressRules(settings.allowed_addresses, settings.denied_addresses, public_only=True)


class Binder:
    """Makes catalogued specs runnable. What tools share (connections, a sandbox) is opened at the first need.

    ``unpacked`` opens the cache of unpacked bundles; ``python_tools`` are the references that the host allows beside
    those of the settings. Whoever publishes a spec chooses among what the operator allowed, and adds nothing to it.
    """

    def __init__(
        self,
        settings: Settings,
        unpacked: Callable[[], BundleCache],
        functions: Mapping[str, Any],
        python_tools: Sequence[str],
        browsers: Browsers | None = None,
    ) -> None:
        self._settings = settings
        self._browsers = browsers or Browsers(settings)
        self._unpacked = unpacked
        self._terms: dict[str, Any] = {
            "default_seconds": settings.run_timeout,
            "most_seconds": settings.max_run_timeout,
        }
        self._rules = address_rules(settings)
        self._functions = functions
        self._python_tools = listed_references((*settings.python_tools, *python_tools))

    def __call__(self, spec: ToolSpec, credentials: Credentials | None = None) -> Tool:
        """The spec with what runs it; ``credentials`` opens those of the record that the spec was read from."""
        match spec.binding.nearest:
            case "python" if brick := self._brick(spec.binding.shipped):
                return self._as_tool(spec, brick)
            case "python":
                shipped = spec.binding.shipped
                own = self._browsers.kept_tool(spec, shipped) if shipped else python_tool(spec, self._python_tools)
                return fenced_tool(own, self._rules)
            case "system_function_rpc_id":
                return fenced_tool(function_tool(spec, self._functions), self._rules)
            case "service_url":
                return bound_tool(spec, self._service, credentials)
            case "command":
                self._commands.check(spec)
                return bound_tool(spec, self._commands, credentials)
            case "mcp":
                return bound_tool(spec, self._mcp, credentials)
            case "source_code_link":
                if not self._settings.run_bundles:
                    raise DeniedError(f"{spec.name!r} is a bundle, and bundles do not run here", rule="run_bundles")
                return bound_tool(spec, self._bundles, credentials)
            case "" if brick := self._brick(spec.name):
                return self._as_tool(spec, brick)
        raise ToolValidationError(f"{spec.name!r} cannot run: its binding does not say how")

    def forget(self, spec: ToolSpec) -> None:
        """Removes the unpacked copy of a deleted tool here, unless it is in use. The code itself is the collector's."""
        from toolcrib.formats.bundle import bundle_digest

        if digest := bundle_digest(spec.binding.source_code_link):
            self._unpacked().forget(digest)

    def close(self) -> None:
        if "_bundles" in vars(self):
            self._bundles.close()
        if "_caller" in vars(self):
            self._caller.close()

    def _brick(self, name: str) -> type[AnyBrick] | None:
        """The brick that ships under this name, unless a tool of the browser does."""
        from toolcrib.bootstrap.bricks import shipped_brick

        return None if not name or name in shipped_names() else shipped_brick(name, self._settings)

    def _as_tool(self, spec: ToolSpec, brick: type[AnyBrick]) -> Tool:
        """The brick, called as a tool."""
        from toolcrib.bootstrap.bricks import called_brick

        tool = described_tool(called_brick(brick, self._settings), spec, isolate=False)
        if brick.spec.tool_type == "browser":
            tool = placed_tool(tool, self._browsers.places)
        return fenced_tool(tool, self._rules)

    @cached_property
    def _commands(self) -> CommandRunner:
        from toolcrib.adapters.runners.command import CommandRunner

        settings = self._settings
        return CommandRunner(
            commands=settings.tool_commands, secrets=settings.secrets, environ=settings.environ, **self._terms
        )

    @cached_property
    def _service(self) -> BoundRunner:
        from toolcrib.adapters.runners.http_service import HttpServiceRunner

        return HttpServiceRunner(self._caller, traced=self._settings.telemetry_propagation, **self._terms)

    @cached_property
    def _mcp(self) -> BoundRunner:
        from toolcrib.adapters.runners.mcp_server import McpRunner

        settings = self._settings
        return McpRunner(
            self._caller, commands=settings.mcp_commands, traced=settings.telemetry_propagation, **self._terms
        )

    @cached_property
    def _bundles(self) -> BundleRunner:
        from toolcrib.adapters.runners.bundle import BundleRunner
        from toolcrib.bootstrap.sandboxes import open_proxies, open_sandbox

        return BundleRunner(self._unpacked(), open_sandbox(self._settings), open_proxies(self._settings), **self._terms)

    @cached_property
    def _caller(self) -> HttpCaller:
        from toolcrib.adapters.http import HttpCaller

        return HttpCaller(self._rules, look_up)
