"""The audit is a chain: the hash of an event covers the event and the hash of the one before it.

Who changes an event, takes one out or puts one in would have to make all later hashes anew. Each chain has a head: its
last number and hash, kept beside it, so that a tail that was cut off is missed as well. A chain that begins beside
others names the heads that it saw, so that none of those can be taken away whole. Who can write everything there is can
make everything anew: against that an operator notes a head elsewhere, and asks whether it is still part of its chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolcrib.core.errors import SettingsError

PAST = "past"
"""The chain of events that were kept before there were chains: they are linked as they are found."""


class Head(NamedTuple):
    """The last link of a chain, or any that somebody remembers. Without a hash only the number is known."""

    chain: str
    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.chain}:{self.number}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        chain, _, rest = text.partition(":")
        number, _, digest = rest.partition(":")
        if not (chain and number.isdecimal() and len(number) < 19 and int(number)):
            raise SettingsError(f"{text!r:.100} is not a head of the audit; it is CHAIN:NUMBER:HASH, as the log has it")
        return cls(chain, int(number), digest)


class Link(NamedTuple):
    """One event in its place. ``saw`` are the heads that the first event of a chain names, each as text."""

    chain: str
    number: int
    hash: str
    saw: str
    event: Sequence[Any]

    @property
    def head(self) -> Head:
        return Head(self.chain, self.number, self.hash)


def linked(events: Iterable[Sequence[Any]], head: Head, saw: str = "") -> list[Link]:
    """The events as links that follow ``head``; one of a number 0 begins a chain, which names what it ``saw``."""
    links: list[Link] = []
    chain, number, digest = head
    for event in events:
        first = saw if number == 0 else ""
        number += 1
        digest = _hash(digest, chain, number, first, event)
        links.append(Link(chain, number, digest, first, event))
    return links


def _hash(before: str, chain: str, number: int, saw: str, event: Sequence[Any]) -> str:
    """Every call passes here twice: one text, in which the lengths say where a part ends."""
    call, at, principal, action, tool, outcome, detail = event
    text = (
        f"{before} {chain} {number} {float(at)!r} {len(saw)} {len(call)} {len(principal)} {len(action)} {len(tool)} "
        f"{len(outcome)} {saw}{call}{principal}{action}{tool}{outcome}{detail}"
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Verdict:
    """``fault`` names the first event that does not fit; empty if every chain is whole."""

    events: int
    chains: int
    fault: str = ""


def verify(links: Callable[[], Iterable[Link]], heads: Mapping[str, Head], remembered: Iterable[Head] = ()) -> Verdict:
    """Whether the chains are whole, reach their heads, and hold every head that somebody remembers.

    ``links`` gives all of them, each chain in its order, and is asked twice.
    """
    named = [*remembered, *(Head.parse(text) for link in links() for text in link.saw.split())]
    asked = {(head.chain, head.number): head for head in (*heads.values(), *named)}
    last: dict[str, Head] = {}
    events = 0
    for link in links():
        before = last.get(link.chain, Head(link.chain, 0, ""))
        if fault := _fault(link, before, asked.pop((link.chain, link.number), None)):
            return Verdict(events, len(last), fault)
        last[link.chain], events = link.head, events + 1
    return Verdict(events, len(last), _cut_off(asked.values(), last))


def _fault(link: Link, before: Head, asked: Head | None) -> str:
    if not link.hash:
        return f"{told(link)} has no hash: it was put in by hand, or by an older release beside this one"
    if link.number != before.number + 1:
        return f"event {before.number + 1} of chain {link.chain} is gone: after {before.number} comes {told(link)}"
    if link.hash != _hash(before.hash, link.chain, link.number, link.saw, link.event):
        return f"{told(link)} was changed, or the one before it was taken out or put in"
    if asked is not None and asked.hash not in (link.hash, ""):
        return f"{told(link)} is not the one that was there when its hash was noted: the chain was made anew"
    return ""


def _cut_off(missing: Collection[Head], last: Mapping[str, Head]) -> str:
    """What is said of heads that no link has."""
    if not missing:
        return ""
    head = min(missing)
    reached = last[head.chain].number if head.chain in last else 0
    return (
        f"event {reached + 1} of chain {head.chain} is gone, and all after it up to {head.number}: its end was cut off"
    )


def told(link: Link) -> str:
    """Which event it is, for who looks for it."""
    call, at, principal, action, tool, outcome = (*map(str, link.event[:6]),)
    what = f"{outcome} of {principal!r} to {action} {tool!r} at {at}, call {call}"
    return f"event {link.number} of chain {link.chain} ({what})"
