"""The network of a bundle: none, unless it asks; then one way out, which the service guards."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol

from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import DeniedError, SettingsError, ToolValidationError
from toolcrib.core.spec import ToolSpec

_ASKS = "network"
"""The word in a spec's metadata: true, or a list of the hosts that the bundle wants to reach."""


class Proxy(Protocol):
    """An HTTP proxy that lets out only where it is allowed to go."""

    async def start(self, listening: socket.socket) -> None: ...

    async def close(self) -> None: ...


Proxies = Callable[[AddressRules], Proxy]
"""Makes the proxy of one run; it lets through what these rules and those of the service both allow."""


def wanted(spec: ToolSpec, *, allowed: bool) -> AddressRules | None:
    """What the bundle asks to reach; None if it does not ask. DeniedError if bundles get no network here."""
    asked = spec.metadata.get(_ASKS)
    if asked is None or asked is False:
        return None
    if not allowed:
        raise DeniedError(
            f"the bundle {spec.name!r} asks for the network, which bundles do not get here "
            "(TOOLCRIB_BUNDLE_NETWORK is false)",
            rule="bundle_network",
        )
    if asked is True:
        return AddressRules()
    if isinstance(asked, list) and asked and all(isinstance(host, str) for host in asked):
        try:
            return AddressRules(allow=tuple(asked))
        except SettingsError as error:
            raise ToolValidationError(
                f"the metadata of {spec.name!r} ask for a network that is none: {error}"
            ) from None
    raise ToolValidationError(f"'network' in the metadata of {spec.name!r} must be true or a list of hosts")
