"""From a path to its endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from toolcrib.surfaces.errors import MethodNotAllowedError, NoSuchPathError
from toolcrib.surfaces.rest.endpoints import Endpoint
from toolcrib.surfaces.rest.metrics import Metrics

_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Route:
    """One path with what it answers to; ``observe`` counts by method."""

    path: str
    pattern: re.Pattern[str]
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    observe: dict[str, Callable[[int, float], None]] = field(default_factory=dict)

    @property
    def allowed(self) -> tuple[str, ...]:
        also = ("HEAD",) if "GET" in self.endpoints else ()
        return tuple(sorted({*self.endpoints, *also}))


class Router:
    def __init__(self, endpoints: Iterable[Endpoint], metrics: Metrics) -> None:
        self._fixed: dict[str, Route] = {}
        self._patterns: list[Route] = []
        for endpoint in endpoints:
            self._add(endpoint, metrics)

    def _add(self, endpoint: Endpoint, metrics: Metrics) -> None:
        route = self._fixed.get(endpoint.path) or next((r for r in self._patterns if r.path == endpoint.path), None)
        if route is None:
            route = Route(endpoint.path, _pattern(endpoint.path))
            if "{" in endpoint.path:
                self._patterns.append(route)
            else:
                self._fixed[endpoint.path] = route
        route.endpoints[endpoint.method] = endpoint
        route.observe[endpoint.method] = metrics.route(endpoint.method, endpoint.path)

    def find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str], Callable[[int, float], None]]:
        """The endpoint, the parameters in the path, and what counts the request.

        A tool may be called ``upload``: a method that the fixed path has not is looked for among the patterns.
        """
        allowed: set[str] = set()
        for route, parameters in self._routes(path):
            wanted = "GET" if method == "HEAD" and "GET" in route.endpoints else method
            if wanted in route.endpoints:
                return route.endpoints[wanted], parameters, route.observe[wanted]
            allowed.update(route.allowed)
        if not allowed:
            raise NoSuchPathError(f"there is nothing at {path!r:.100}; GET /openapi.json says what there is")
        ways = tuple(sorted(allowed))
        raise MethodNotAllowedError(f"{method:.20} is not possible here; use {' or '.join(ways)}", ways)

    def _routes(self, path: str) -> Iterator[tuple[Route, dict[str, str]]]:
        if path in self._fixed:
            yield self._fixed[path], {}
        for route in self._patterns:
            found = route.pattern.fullmatch(path)
            if found is not None:
                yield route, found.groupdict()


def _pattern(path: str) -> re.Pattern[str]:
    pieces = _PARAMETER.split(path)
    return re.compile(
        "".join(f"(?P<{piece}>[^/]+)" if number % 2 else re.escape(piece) for number, piece in enumerate(pieces))
    )
