"""A running system: everything that the settings ask for, each part opened at the first need and closed at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from toolcrib.bootstrap.binding import Binder
from toolcrib.bootstrap.browsers import Browsers
from toolcrib.bootstrap.local import find_plugins, known_names, sample_brick
from toolcrib.bootstrap.policies import open_policy
from toolcrib.bootstrap.seals import open_seal
from toolcrib.bootstrap.stores import (
    is_in_our_folder,
    open_audit,
    open_bearer,
    open_blobs,
    open_outbox,
    open_store,
    open_tokens,
    open_unpacked,
)
from toolcrib.bootstrap.telemetry import open_observers
from toolcrib.calling.authorising import Authoriser
from toolcrib.calling.call import Calls, Unbound
from toolcrib.calling.observing import Observer
from toolcrib.calling.recording import Recorder
from toolcrib.calling.sharing import shared_runs
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.code import withdraw
from toolcrib.catalogue.collecting import erase
from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.formats.bundle import bundle_digest
from toolcrib.settings import Settings, load_settings

if TYPE_CHECKING:
    from toolcrib.adapters.runners.unpacking import BundleCache
    from toolcrib.bootstrap.bricks import KnownBricks
    from toolcrib.ports import AuditLog, Bearer, Blobs, Deliverer, Policy, Store, StoreSeal, Tokens
    from toolcrib.registry import ToolRegistry


@dataclass(eq=False)
class System:
    """The parts that library, command line, service and MCP server are made of.

    ``functions`` are those that system bindings may name; ``python_tools`` are the ``module:attribute`` that python
    bindings may name, beside the settings' own; ``cleanups`` run after a delete, beside the one that removes a bundle;
    ``observers`` are told of every run, beside OpenTelemetry if its SDK is there; ``clock`` says when something was
    written or done.
    """

    settings: Settings
    functions: Mapping[str, Any] = field(default_factory=dict)
    python_tools: Sequence[str] = ()
    cleanups: Sequence[Callable[[ToolSpec], None]] = ()
    observers: Sequence[Observer] = ()
    clock: Callable[[], float] = time.time
    _closing: ExitStack = field(default_factory=ExitStack, init=False)

    @cached_property
    def store(self) -> Store:
        url = self.settings.store_url
        return self._closing.enter_context(
            closing(open_store(url, clock=self.clock, may_make_folder=is_in_our_folder(self.settings)))
        )

    @cached_property
    def audit(self) -> AuditLog:
        url = self.settings.store_url
        return self._closing.enter_context(closing(open_audit(url, may_make_folder=is_in_our_folder(self.settings))))

    @cached_property
    def tokens(self) -> Tokens:
        return self._closing.enter_context(closing(open_tokens(self.settings)))

    @cached_property
    def bearer(self) -> Bearer | None:
        bearer = open_bearer(self.settings)
        return None if bearer is None else self._closing.enter_context(closing(bearer))

    @cached_property
    def blobs(self) -> Blobs:
        return open_blobs(self.settings)

    @cached_property
    def unpacked(self) -> BundleCache:
        return open_unpacked(self.settings, self.blobs)

    @cached_property
    def outbox(self) -> Deliverer | None:
        return open_outbox(self.settings, self.store, clock=self.clock)

    @cached_property
    def policy(self) -> Policy | None:
        policy, close = open_policy(self.settings)
        self._closing.callback(close)
        return policy

    @cached_property
    def seal(self) -> StoreSeal:
        return open_seal(self.settings, self.store)

    @cached_property
    def binder(self) -> Binder:
        binder = Binder(self.settings, lambda: self.unpacked, self.functions, self.python_tools, self.browsers)
        self._closing.callback(binder.close)
        return binder

    @cached_property
    def catalogue(self) -> Catalogue:
        """The kept tools; closing them closes the system. Deletions that a crash interrupted are finished here."""
        self.seal.check()
        binder = self.binder
        catalogue = Catalogue(
            self.store,
            policy=self.policy,
            audit=self.audit,
            seal=self.seal,
            bind=binder,
            cleanups=[binder.forget, self._withdraw, *self.cleanups],
            erase=lambda digests: erase(self.blobs, self.store, digests),
            closing=[self.close],
            announce=bool(self.settings.events_receiver),
            owners=self.settings.tool_owners == "enforced",
            unknown_rules=self.settings.unknown_policy_rules,
            clock=self.clock,
        )
        catalogue.recover()
        return catalogue

    @cached_property
    def browsers(self) -> Browsers:
        """What the browser tools share; its sessions end with the system."""
        browsers = Browsers(self.settings)
        self._closing.callback(browsers.close)
        return browsers

    @cached_property
    def recorder(self) -> Recorder:
        """Tells the audit of calls, and of what the doors refuse."""
        return Recorder(self.audit, self.clock)

    @cached_property
    def calls(self) -> Calls:
        """The one way to call the catalogue's tools, under the rules of the settings."""
        policy = self.catalogue.policy
        return Calls(
            self.catalogue.resolve,
            SafetyLevel(self.settings.highest_safety_level),
            authoriser=None if policy is None else Authoriser(policy),
            recorder=self.recorder,
            remote=self.catalogue.remote,
            observers=(*self.observers, *open_observers(self.settings)),
        )

    @cached_property
    def shared_calls(self) -> Calls:
        """The same for a service: so many runs at once, shared fairly by caller."""
        return replace(self.calls, layers=(shared_runs(self.settings.max_runs), *self.calls.layers))

    @cached_property
    def local_calls(self) -> Calls:
        """The one way to call every tool of this machine, by the same rules."""
        return replace(self.calls, resolve=self.find_tool)

    def _withdraw(self, spec: ToolSpec) -> None:
        """The address of a deleted tool's code leads nowhere from now on, though the collector comes later."""
        if digest := bundle_digest(spec.binding.source_code_link):
            withdraw(self.blobs, digest)

    @cached_property
    def plugins(self) -> ToolRegistry:
        return find_plugins(self.settings)

    def find_tool(self, name: str) -> Tool | Unbound:
        """A tool of this machine: the catalogue's if it says how it runs, else a plugin's, else one that ships."""
        kept = name in self.catalogue
        if kept and self.catalogue.get(name).binding:
            return self.catalogue.resolve(name)
        if name in self.plugins:
            return self.plugins.get(name)
        if shipped := self.browsers.own_tool(name):
            return shipped
        if kept:
            return self.catalogue.resolve(name)  # a brick by its name, or the reason why it cannot run
        if sample := sample_brick(name):
            return self.binder(sample)
        raise ToolNotFoundError(name, [*self.plugins.names(), *known_names(self.catalogue)])

    @cached_property
    def bricks(self) -> KnownBricks:
        """What the steps of a pipeline may name: bricks, and the catalogue's tools that say how they run."""
        from toolcrib.bootstrap.bricks import KnownBricks

        catalogue = self.catalogue

        def kept(name: str) -> ToolSpec | None:
            return catalogue.specs_of([name]).get(name)

        return KnownBricks(self.settings, kept, catalogue.tool)

    def close(self) -> None:
        """Close what was opened, the last first. A second time does nothing."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_system(settings: Settings | None = None) -> System:
    """The system that the settings ask for. Nothing is opened before it is needed."""
    return System(settings or load_settings())


def open_catalogue(
    url: str | None = None,
    settings: Settings | None = None,
    *,
    functions: Mapping[str, Any] | None = None,
    python_tools: Sequence[str] = (),
    cleanups: Sequence[Callable[[ToolSpec], None]] = (),
) -> Catalogue:
    """The catalogue at ``url``, or where the settings say.

    ``functions``, ``python_tools`` and ``cleanups`` are those of :class:`System`.
    """
    settings = settings or load_settings()
    if url is not None:
        settings = settings.with_changes("argument", store=url)
    with ExitStack() as undo:
        system = undo.enter_context(System(settings, functions or {}, python_tools, cleanups))
        catalogue = system.catalogue
        undo.pop_all()
    return catalogue


def rotate_seal(settings: Settings, *, lost: bool = False) -> int:
    """Seal every credential again with the first of the configured keys, or with a new one if the key is ours;
    how many tools that touched. None if the old key is ``lost``: what it sealed stays closed.
    """
    with open_system(settings) as system:
        if not lost:
            system.seal.require()
        system.seal.rotate()
        return 0 if lost else system.catalogue.reseal(principal="rotation")
