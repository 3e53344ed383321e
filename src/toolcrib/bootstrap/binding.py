"""How a catalogued spec becomes runnable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolcrib.bootstrap.local import shipped_tool
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import DeniedError, ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.http import HttpCaller
    from toolcrib.adapters.runners.unpacking import BundleCache

BROWSER_TOOLS = "toolcrib.toolsets.browser.standalone"
"""What kept browser tools are bound to; they get the browser that the settings name."""
SHIPPED_MODULES = ("toolcrib.toolsets",)
"""What python bindings may always import: the tools that come with Toolcrib."""


def address_rules(settings: Settings, *, own: bool = False) -> AddressRules:
    """Who may be reached by tools: whatever is public, but for what the settings add and take away.

    ``own`` is for what a person does at the command line: everything may be reached but what the settings deny.
    """
    if own:
        return AddressRules(deny=settings.denied_addresses)
    return AddressRules(settings.allowed_addresses, settings.denied_addresses, public_only=True)


class Binder:
    """Makes catalogued specs runnable. What tools share (connections, a sandbox) is opened at the first need.

    ``credentials`` opens those of the tool of a name; ``unpacked`` opens the cache of unpacked bundles.
    """

    def __init__(
        self,
        settings: Settings,
        credentials: Callable[[str], Mapping[str, Any]],
        unpacked: Callable[[], BundleCache],
        functions: Mapping[str, Any],
        python_modules: Sequence[str],
    ) -> None:
        self._settings = settings
        self._terms: dict[str, Any] = {"credentials": credentials, "default_seconds": settings.run_timeout}
        self._unpacked = unpacked
        self._rules = address_rules(settings)
        self._functions = functions
        self._python_modules = (*SHIPPED_MODULES, *settings.python_modules, *python_modules)

    def __call__(self, spec: ToolSpec) -> Tool:
        """The spec with what runs it; of several bindings the nearest wins."""
        binding = spec.binding
        if binding.python:
            from toolcrib.adapters.runners.bound import described_tool
            from toolcrib.adapters.runners.fenced import fenced_tool
            from toolcrib.adapters.runners.python_reference import python_tool

            module, _, attribute = binding.python.partition(":")
            shipped = shipped_tool(attribute, self._settings.chromium) if module == BROWSER_TOOLS else None
            tool = described_tool(shipped, spec, isolate=True) if shipped else python_tool(spec, self._python_modules)
            return fenced_tool(tool, self._rules)
        if binding.system_function_rpc_id:
            from toolcrib.adapters.runners.fenced import fenced_tool
            from toolcrib.adapters.runners.system_function import function_tool

            return fenced_tool(function_tool(spec, self._functions), self._rules)
        from toolcrib.adapters.runners.bound import bound_tool

        # An upload always leaves a link, so what was said beside it comes first.
        if binding.service_url:
            return bound_tool(spec, self._service)
        if binding.mcp:
            return bound_tool(spec, self._mcp)
        if not binding.source_code_link:
            raise ToolValidationError(f"{spec.name!r} cannot run: its binding does not say how")
        if not self._settings.run_bundles:
            raise DeniedError(f"{spec.name!r} is a bundle, and bundles do not run here", rule="run_bundles")
        return bound_tool(spec, self._bundle)

    def forget(self, spec: ToolSpec) -> None:
        """Removes the unpacked copy of a deleted tool here, unless it is in use. The code itself is the collector's."""
        from toolcrib.formats.bundle import bundle_digest

        if digest := bundle_digest(spec.binding.source_code_link):
            self._unpacked().forget(digest)

    def close(self) -> None:
        if "_caller" in vars(self):
            self._caller.close()

    @cached_property
    def _service(self) -> Runner:
        from toolcrib.adapters.runners.http_service import HttpServiceRunner

        return HttpServiceRunner(self._caller, **self._terms)

    @cached_property
    def _mcp(self) -> Runner:
        from toolcrib.adapters.runners.mcp_server import McpRunner

        return McpRunner(self._caller, commands=self._settings.mcp_commands, **self._terms)

    @cached_property
    def _bundle(self) -> Runner:
        from toolcrib.adapters.runners.bundle import BundleRunner
        from toolcrib.adapters.runners.sandbox import Sandbox, SandboxLimits

        sandbox = Sandbox(SandboxLimits(network=self._settings.bundle_network, user=self._settings.bundle_user))
        return BundleRunner(self._unpacked(), sandbox, **self._terms)

    @cached_property
    def _caller(self) -> HttpCaller:
        from toolcrib.adapters.http import HttpCaller

        return HttpCaller(self._rules)
