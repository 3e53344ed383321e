"""robots.txt, read by Protego, which Scrapy's authors keep up: who is meant, what is allowed, and how often."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib import MissingDependencyError

if TYPE_CHECKING:
    from protego import Protego

MOST_BYTES = 512_000
"""As much of a robots.txt is read, somewhat more than RFC 9309 asks for."""
OWN_NAME = "Toolcrib"
_MOST_LINES = 2000
_MOST_TRIED = 5
"""Which rule refused is looked for in a file that its host wrote: nobody waits long for the answer."""

_COMPATIBLE = re.compile(r"compatible;\s*([A-Za-z][\w-]*)")
_FIRST_PRODUCT = re.compile(r"([A-Za-z][\w-]*)")
_DISALLOW = re.compile(r"\s*disallow\s*:\s*([^\s#][^#]*)", re.IGNORECASE)


def name_of(user_agent: str) -> str:
    """The product that a User-Agent stands for; a browser's, or none, is ours."""
    found = _COMPATIBLE.search(user_agent) or _FIRST_PRODUCT.match(user_agent)
    return OWN_NAME if found is None or found[1] == "Mozilla" else found[1]


class RobotsTxt:
    """What one robots.txt says to one crawler."""

    def __init__(self, text: str, name: str) -> None:
        try:
            from protego import Protego
        except ImportError:
            raise MissingDependencyError("protego, which reads robots.txt,", extra="scraping") from None
        self._parse = Protego.parse
        self._lines = text.splitlines()
        self._name = name
        self._rules = Protego.parse(text)
        self.delay: float = self._rules.crawl_delay(name) or 0.0

    def refusal(self, url: str) -> str:
        """The line that keeps the crawler away from ``url``, the longest if there are several; '' if it may go.

        Just ``Disallow`` if it cannot be found soon.
        """
        if self._rules.can_fetch(url, self._name):
            return ""
        fitting = [number for number, alone in self._alone.items() if not alone.can_fetch(url, self._name)]
        for number in sorted(fitting, key=lambda number: len(self._lines[number]), reverse=True)[:_MOST_TRIED]:
            without = (line for at, line in enumerate(self._lines) if at == number or at not in fitting)
            if not self._parse("\n".join(without)).can_fetch(url, self._name):  # a line of our group, not of another's
                return self._lines[number].partition("#")[0].strip()
        return "Disallow"

    @cached_property
    def _alone(self) -> dict[int, Protego]:
        """Every line that disallows something, as if it were the only one; none if they are too many."""
        found = ((number, _DISALLOW.match(line)) for number, line in enumerate(self._lines))
        rules = [(number, rule[1]) for number, rule in found if rule]
        if len(rules) > _MOST_LINES:
            return {}
        return {number: self._parse(f"User-agent: *\nDisallow: {rule}") for number, rule in rules}
