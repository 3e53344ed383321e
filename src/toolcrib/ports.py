"""What Toolcrib needs from the world: small protocols, each with a memory implementation that is also the test's fake.

All of them are synchronous. An implementation whose calls leave the process says ``remote = True``, and an async
caller then runs it in a thread (:mod:`toolcrib.calling.blocking`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from toolcrib.core.chains import Head, Link
    from toolcrib.core.limits import Action
    from toolcrib.core.query import Filter
    from toolcrib.core.ranking import Candidate, Lookup
    from toolcrib.core.roles import Principal
    from toolcrib.core.tokens import TokenRecord

Outcome = Literal["attempt", "done", "failed", "refused", "crashed"]


# Policy: may this be done?


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    principal: str
    action: Action
    tool: str
    spec: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The tool as JSON values, credentials left out."""
    digest: str = ""
    roles: tuple[str, ...] = ()
    """What the principal is, as their token says."""


@dataclass(frozen=True, slots=True)
class Decision:
    allow: bool
    reason: str = ""
    rule: str = ""
    unserved: tuple[str, ...] = field(default=(), repr=False)
    """Of the policy rules that a tool to be written names, those that the policy does not know."""


class Policy(Protocol):
    remote: bool

    def decide(self, request: PolicyRequest) -> Decision:
        """Yes or no with its reason. Raises PolicyUnavailableError if nobody could be asked."""
        ...


# Audit: what was done?


class AuditEvent(NamedTuple):
    """``call`` joins the events of one attempt: ``attempt`` first, then one of the other outcomes."""

    call: str
    at: float
    principal: str
    action: Action
    tool: str
    outcome: Outcome
    detail: str = ""


class Audit(Protocol):
    remote: bool

    def record(self, *events: AuditEvent) -> None:
        """Keep the events, all at once. They are kept when this returns."""
        ...


class AuditCriteria(TypedDict, total=False):
    tool: str
    principal: str
    action: str
    outcome: str
    call: str


class AuditLog(Audit, Protocol):
    """An audit that can be asked."""

    def events(self, *, since: float = 0.0, limit: int = 100, **wanted: Unpack[AuditCriteria]) -> list[AuditEvent]:
        """What was kept and has the wanted values, newest first. An empty criterion does not count."""
        ...

    def links(self) -> Iterator[Link]:
        """Every event with its place in its chain, chain by chain and in order."""
        ...

    def heads(self) -> dict[str, Head]:
        """The head of every chain, the one that was written last at the end."""
        ...

    def adopt(self, links: Iterable[Link], heads: Mapping[str, Head]) -> None:
        """Keep what a backup holds, each event in its place; what is there already stays as it is."""
        ...

    def ping(self) -> None:
        """Write something that does not stay. Raises StoreError if events cannot be kept."""
        ...

    def close(self) -> None: ...


# Seal: credentials, closed to everybody who only has the store


class Seal(Protocol):
    def close(self, value: Any, context: str) -> str:
        """A JSON value as sealed text that opens only with the same ``context``."""
        ...

    def open(self, sealed: str, context: str) -> Any:
        """The value again. Raises SettingsError if the key is gone, StoreError if the text was tampered with."""
        ...


class StoreSeal(Seal, Protocol):
    """A seal for one store, which names the key: no two processes seal with keys of their own."""

    def check(self) -> None:
        """Raises SettingsError if our keys are others than the store's. Without any key there is still much to read."""
        ...

    def require(self) -> None:
        """For who will seal: raises SettingsError unless the store's key is ours.

        A store that others share is claimed at once, before one of them seals with a key that we lack.
        """
        ...

    def rotate(self) -> None:
        """Let the first of the given keys seal from now on, or a new one if they are made here."""
        ...


SEAL_CLAIM = "seal_key"
"""Under this name a store keeps the fingerprint of the key that seals its credentials (:meth:`Store.claim`)."""


# Tokens: who may come in


class Tokens(Protocol):
    remote: bool

    def add(self, record: TokenRecord) -> None: ...

    def find(self, digest: str) -> TokenRecord | None: ...

    def all(self) -> list[TokenRecord]:
        """Every token, oldest first."""
        ...

    def revoke(self, token_id: str) -> bool:
        """Whether there was such a token."""
        ...

    def close(self) -> None: ...


class Bearer(Protocol):
    async def verify(self, token: str, caller: str = "") -> tuple[Principal, float]:
        """Who a signed token is of, and when it expires. Raises UnauthenticatedError if it is not valid.

        Never waits for the issuer as long as the token's key is known; otherwise not for long, and each ``caller``
        (the address it came from) in its turn. UnavailableError if nobody can say whether it is valid.
        """
        ...

    def close(self) -> None: ...


# Store: tools that outlive the process


class _Anything:
    def __repr__(self) -> str:
        return "ANY"


ANY = _Anything()
"""As ``Change.expected``: whatever is there."""


@dataclass(frozen=True, slots=True)
class Record:
    """One stored version of one tool."""

    name: str
    version: int
    """1, 2, 3 ... for each name; never used twice, not even after a delete."""
    etag: str
    """Opaque; another one with every write."""
    document: dict[str, Any]
    """The spec as JSON values, every field present, credentials sealed."""
    at: float
    """When it was written, seconds since the epoch."""
    deleted: bool = False
    owner: str = ""
    """Who may change the tool, beside administrators; empty if it is the operator's."""
    definition: int = 0
    """The version that its definition dates from: later ones changed how the tool runs, and no more.

    0 for a deletion, and for what a store wrote before it kept this."""


@dataclass(frozen=True, slots=True)
class Change:
    """Write ``document`` under ``name``, or delete it if ``document`` is None.

    ``expected`` is the etag that must be there, None if nothing may be there, ANY if it does not matter.
    ``event`` is a payload for the outbox, kept in the same transaction and delivered later.
    ``owner`` is the tool's from now on; None: as it is, and nobody of a tool that is new. It ends with a delete.
    ``purge``, of a delete: every version goes too, and no record stays of the name, also if it was deleted before.
    """

    name: str
    document: dict[str, Any] | None
    expected: str | _Anything | None = ANY
    event: dict[str, Any] | None = None
    owner: str | None = None
    purge: bool = False


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    sequence: int
    name: str
    payload: dict[str, Any]
    attempts: int = 0
    not_before: float = 0.0
    last_error: str = ""


class Outbox(Protocol):
    """Events that were committed together with their change and wait for delivery."""

    def outbox(self, *, limit: int = 100) -> list[OutboxEvent]:
        """What waits for delivery, oldest first."""
        ...

    def acknowledge(self, sequence: int) -> None:
        """Delivered: the event goes away. An unknown one is a no-op."""
        ...

    def postpone(self, sequence: int, *, not_before: float, error: str) -> None:
        """Not delivered: one more attempt is counted. An unknown one is a no-op."""
        ...


class Deliverer(Protocol):
    """Takes what waits in an outbox to its receiver."""

    def start(self) -> None:
        """Deliver beside what else goes on. A second time does nothing."""
        ...

    def stop(self) -> None:
        """Finish the delivery under way and return; what waits stays in the outbox."""
        ...


class Store(Outbox, Protocol):
    """Documents by name with their history and an outbox. Every write is durable when ``commit`` returns.

    What a query may cost is in :mod:`toolcrib.core.query.budget`, if whoever asks has set limits. A store tells it of
    each document that is looked at or found, and ends what runs for the query, here or on a server, when its time is
    over. It answers the next question as if nothing had been.
    """

    remote: bool

    def generation(self) -> object | None:
        """Equal values: nothing was written between the two calls, by anybody. None if the store cannot tell."""
        ...

    def get(self, name: str) -> Record | None: ...

    def commit(self, changes: Sequence[Change]) -> list[Record]:
        """All of the changes or none.

        Raises ToolExistsError if ``expected`` is None and something is there, ToolNotFoundError if a delete
        or an expected etag finds nothing, ConflictError if the etag is another one. A purge finds what was ever there;
        it comes alone, with no other change of the name, and answers a deletion that is not kept.
        """
        ...

    def query(self, where: Filter, *, limit: int | None = None, after: str | None = None) -> list[Record]:
        """What matches, ordered by name, beginning after the name ``after``."""
        ...

    def count(self, where: Filter) -> int: ...

    def text_candidates(self, wanted: Sequence[Lookup], *, limit: int) -> list[Candidate]:
        """Tools that hold a word of every lookup, at most ``limit`` of them and in any order: ranking is not a store's.

        The words are those of :func:`toolcrib.core.ranking.index_words`, of what is committed at that moment.
        """
        ...

    def history(self, name: str) -> list[Record]:
        """Every version of a name, newest first, the current one and deletions included."""
        ...

    def claimed(self, name: str) -> str:
        """What :meth:`claim` keeps under ``name``, beside the tools; empty if nothing."""
        ...

    def claim(self, name: str, value: str, *, instead_of: str = "") -> str:
        """Keep ``value`` under ``name`` if ``instead_of`` is there (empty: if nothing is); what is there afterwards.

        Of several who claim at once, in however many processes, one wins and all get the winner's value.
        """
        ...

    def ping(self) -> None:
        """Write something that does not stay. Raises StoreError if the store cannot be reached or written."""
        ...

    def close(self) -> None: ...


# Blobs: uploaded bundles, by digest


class Blobs(Protocol):
    remote: bool

    def put(self, key: str, source: BinaryIO) -> None:
        """Write the bytes under ``key``, whole or not at all, also if something is there: it is then as new."""
        ...

    def open(self, key: str) -> Iterator[bytes] | None:
        """The bytes in pieces, or None if there is no such key."""
        ...

    def holds(self, key: str) -> bool: ...

    def copy(self, key: str, to: str) -> bool:
        """The same bytes under another key too, as new there; False if there is no such key."""
        ...

    def move(self, key: str, to: str) -> bool:
        """The bytes under another key, as new there; False if there is no such key.

        They are under one of the two keys at every moment, and under both for a while if the move takes two steps.
        """
        ...

    def link(self, key: str, *, seconds: int = 3600) -> str | None:
        """An address that serves the bytes for a while, or None if the service must serve them itself."""
        ...

    def delete(self, key: str) -> None:
        """Remove. An unknown key is a no-op."""
        ...

    def keys(self, folder: str = "") -> Iterator[tuple[str, float]]:
        """Every key, or every key below a folder, and when it was written."""
        ...

    def ping(self) -> None:
        """Write something that does not stay. Raises StoreError that says why blobs cannot be read or written here."""
        ...
