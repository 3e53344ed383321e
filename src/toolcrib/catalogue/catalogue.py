"""Catalogue: publish, update, delete, find; every rule about tools that are kept is here and no door has its own.

A write goes the same way each time: parse -> audit the attempt -> authorise -> check -> seal -> commit -> audit the
outcome. The commit holds the document, its words, its history and the event for the outbox, all or nothing.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, TypeVar

from toolcrib.calling.authorising import Authoriser, check_limits
from toolcrib.calling.call import Unbound
from toolcrib.calling.recording import Recorder, recorded
from toolcrib.catalogue import credentials as secrets
from toolcrib.catalogue.announcements import EventKind, announcement
from toolcrib.catalogue.cleaning import PURGED, Cleaning
from toolcrib.catalogue.code import digest_named
from toolcrib.catalogue.creator import Publishable, changed_spec, checked_spec, with_kept_link
from toolcrib.catalogue.deleter import users_of
from toolcrib.catalogue.entries import Entry, Told
from toolcrib.catalogue.reading import CatalogueReader
from toolcrib.core.errors import (
    BreakingChangeError,
    ConflictError,
    MissingConfigError,
    ToolcribError,
    ToolExistsError,
    ToolInUseError,
    ToolNotFoundError,
    ToolValidationError,
    UnknownPolicyRuleError,
    unserved_rules,
)
from toolcrib.core.limits import Action
from toolcrib.core.roles import LONGEST_NAME, Principal, Role, Who, require
from toolcrib.core.spec import ToolSpec, rules_named
from toolcrib.core.tool import Tool
from toolcrib.core.versions import broken_by
from toolcrib.ports import Audit, Change, Policy, Record, Seal, Store

_T = TypeVar("_T")
Bind = Callable[[ToolSpec, Callable[[], Mapping[str, Any]] | None], Tool]
"""Makes a spec runnable, with what opens the credentials of the record that it was read from; None if it has none."""
UnknownRules = Literal["warn", "refuse", "ignore"]
_log = logging.getLogger(__name__)
_TRIES = 20
_MOST_BOUND = 1000


class Catalogue(CatalogueReader):
    """The tools in a store. Every answer has its credentials masked.

    ``principal`` is who asks, as the door authenticated them. Who publishes a tool owns it; with ``owners`` only they
    and administrators change it. A bare name is a program of the operator, who may.
    ``announce`` says that somebody reads the outbox.
    ``unknown_rules`` says what becomes of a write that names a policy rule which nobody serves.
    ``cleanups`` remove what belongs to a deleted tool elsewhere; each may run more than once for the same tool.
    ``erase`` removes code by its digests for good, unless somebody needs it: a purge asks for that.
    """

    def __init__(  # noqa: PLR0913 - one argument a port
        self,
        store: Store,
        *,
        policy: Policy | None = None,
        audit: Audit | None = None,
        seal: Seal | None = None,
        bind: Bind | None = None,
        cleanups: Sequence[Callable[[ToolSpec], None]] = (),
        erase: Callable[[Sequence[str]], object] = lambda _: None,
        closing: Sequence[Callable[[], None]] = (),
        announce: bool = False,
        owners: bool = True,
        unknown_rules: UnknownRules = "warn",
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(store)
        self._authoriser = Authoriser(policy, owners)
        self._unknown_rules = unknown_rules
        self.audit = audit
        self.policy = policy
        self._seal = seal
        self._bind = bind
        self._closing = tuple(closing)
        self._announce = announce
        self._clock = clock
        self._recorder = None if audit is None else Recorder(audit, clock)
        self._cleaning = Cleaning(store, tuple(cleanups), announce, erase)
        self._bound: dict[str, tuple[str, Tool]] = {}

    def as_seen_by(self, principal: Who) -> CatalogueReader:
        """The tools that somebody may read: all of them unless the policy or their token decides on reads."""
        if not self._authoriser.decides_reads(principal):
            return self

        def check_read(record: Record) -> None:
            self._authoriser.check("read", record.document, principal)

        return CatalogueReader(self.store, check_read)

    # Running

    def tool(self, name: str) -> Tool:
        """The spec bound to what runs it. The same object until the tool changes."""
        found = self.resolve(name)
        if isinstance(found, Unbound):
            raise found.reason
        return found

    def resolve(self, name: str) -> Tool | Unbound:
        """As ``tool``, but what cannot run comes back with the reason, for those alone who may run it."""
        record = self._record(name)
        etag, tool = self._bound.get(name, ("", None))
        if tool is None or etag != record.etag:
            spec = Entry.of(record).spec
            try:
                tool = self._bound_tool(spec, record.document)
            except ToolcribError as error:
                return Unbound(spec, error)
            if len(self._bound) >= _MOST_BOUND:
                self._bound.clear()
            self._bound[name] = (record.etag, tool)
        return tool

    def _bound_tool(self, spec: ToolSpec, document: Mapping[str, Any]) -> Tool:
        if self._bind is None:
            raise MissingConfigError(
                f"this catalogue was opened without a way to run tools, so not {spec.name!r} either"
            )
        return self._bind(spec, partial(secrets.opened, document, self._seal) if document["credentials"] else None)

    def credentials(self, name: str) -> dict[str, Any]:
        """The credentials in clear, for the operator's own programs and for nobody else."""
        return secrets.opened(self._record(name).document, self._seal)

    # Writing

    def publish(self, spec: Publishable, *, replace: bool = False, force: bool = False, principal: Who = "") -> Entry:
        """Add a tool; ToolExistsError if the name is taken. ``replace`` writes over it, as an update would."""
        return self.publish_many([spec], replace=replace, force=force, principal=principal)[0]

    def publish_many(
        self, specs: Iterable[Publishable], *, replace: bool = False, force: bool = False, principal: Who = ""
    ) -> list[Entry]:
        """Add all of the tools or none."""
        checked = [checked_spec(spec) for spec in specs]
        if not checked:
            return []
        _refuse_repeated([spec.name for spec in checked])
        found = self._records(checked)
        targets: dict[str, Action] = {name: "update" if record else "create" for name, record in found.items()}

        def publish_once() -> list[Entry]:
            nonlocal found
            current, found = found or self._records(checked), {}
            for spec in checked:
                action: Action = "update" if replace and current[spec.name] else "create"
                check_limits(action, {"name": spec.name, "tags": spec.tags}, principal)
            taken = next((name for name, record in current.items() if record and not replace), None)
            if taken is not None:
                raise ToolExistsError(taken)
            return self._write([(spec, current[spec.name]) for spec in checked], force=force, principal=principal)

        with recorded(self._recorder, targets, principal) as attempt:
            races = (ConflictError, ToolExistsError, ToolNotFoundError)
            entries = self._again(publish_once, retry_on=races if replace else ())
            attempt.detail = _written(entries)
        return entries

    def refuse_taken(self, spec: ToolSpec, *, principal: Who = "") -> NoReturn:
        """ToolExistsError, on record as if the tool had been published; who may not publish it is not told so much."""
        with recorded(self._recorder, {spec.name: "update"}, principal):
            check_limits("create", {"name": spec.name, "tags": spec.tags}, principal)
            raise ToolExistsError(spec.name)

    def update(
        self,
        name: str,
        change: Callable[[ToolSpec], Mapping[str, Any]] | None = None,
        /,
        *,
        force: bool = False,
        expected: str | None = None,
        principal: Who = "",
        **changes: Any,
    ) -> Entry:
        """Change some fields; ``change`` may compute them from the current spec.

        Raises BreakingChangeError if callers would break and the major version does not rise, unless ``force``.
        Credentials that are not given stay, unless what runs the tool is another now: then it has none.
        With ``expected``, ConflictError if the etag is another one; without it, the change is made again
        on top of what somebody else wrote meanwhile.
        """

        def update_once() -> Entry:
            record = self._record(name)
            check_limits("update", record.document, principal)
            if expected is not None and record.etag != expected:
                raise ConflictError(f"{name!r} was changed by somebody else; read it again and repeat the change")
            current = Entry.of(record).spec
            wanted = {**(change(current) if change else {}), **changes}
            spec = with_kept_link(changed_spec(current, wanted), record.document)
            if "credentials" not in wanted:
                spec = secrets.carried(spec, record.document)
            if spec.name != name:
                raise ToolValidationError(f"{name!r} cannot be renamed to {spec.name!r}; publish that and delete this")
            if spec.digest == current.digest and spec.credentials == current.credentials:
                self._authoriser.check("update", spec.to_dict(), principal, before=record)
                return Entry.of(record)
            return self._write([(spec, record)], force=force, principal=principal)[0]

        with recorded(self._recorder, {name: "update"}, principal) as attempt:
            entry = self._again(update_once, retry_on=(ConflictError,) if expected is None else ())
            attempt.detail = _written([entry])
        return entry

    def restore(self, name: str, number: int, *, principal: Who = "") -> Entry:
        """Make an old version the current one again, also after a delete; the history grows by one.

        Credentials are not turned back: a tool that is there keeps those it has, if they are for what runs it then.
        A deleted one keeps its owner, if it is brought back by somebody who might change it, and gets the credentials
        of that version if they were the same owner's; with anybody else it is theirs, and has no credentials.
        What breaks is told, not refused.
        """

        def restore_once() -> Entry:
            record = self.store.get(name)
            last = record or next(one for one in self._versions(name) if not one.deleted)
            check_limits("update" if record else "create", last.document, principal)
            old = self._version(name, number)
            kept, owner = (record or old).document, None
            spec = ToolSpec.parse({**old.document, "credentials": {}})
            if self._authoriser.may_change(last, principal):
                owner = last.owner
                spec = secrets.carried(spec, kept) if record or old.owner == owner else spec
            return self._write([(spec, record)], kept=kept, owner=owner, force=True, principal=principal)[0]

        with recorded(self._recorder, {name: "update"}, principal) as attempt:
            entry = self._again(restore_once, retry_on=(ConflictError,))
            attempt.detail = f"version {number} again; {_written([entry])}"
        return entry

    def give(self, name: str, owner: str, *, principal: Who = "") -> Entry:
        """Make somebody the owner of a tool, by the name that a door knows them by; empty: the operator."""
        if len(owner) > LONGEST_NAME or not (owner or "-").isprintable():
            raise ToolValidationError(
                f"{owner!r:.80} is not the name of an owner; use up to {LONGEST_NAME} printable characters"
            )

        def give_once() -> Entry:
            record = self._record(name)
            self._authoriser.check("update", record.document, principal, before=record)
            return Entry.of(self.store.commit([Change(name, record.document, record.etag, owner=owner)])[0])

        with recorded(self._recorder, {name: "update"}, principal) as attempt:
            entry = self._again(give_once, retry_on=(ConflictError,))
            attempt.detail = f"given to {owner!r}; {_written([entry])}"
        return entry

    def delete(
        self,
        name: str,
        force: bool = False,
        *,
        purge: bool = False,
        expected: str | None = None,
        principal: Who = "",
    ) -> None:
        """Remove a tool and what belongs to it; ToolInUseError while others name it, unless ``force``.

        With ``purge``, which is for administrators, nothing stays but the audit: no history, no bundle that no other
        tool has, no number of a version. What was deleted before can be purged too.
        """
        if purge:
            self._purge(name, force, expected, principal)
            return

        def delete_once() -> Record:
            record = self._record(name)
            self._check_deletion(record, record, force, expected, principal)
            spec = Entry.of(record).spec
            told = self._announce or self._cleaning.concerns(spec)
            event = self._event("tool.deleted", spec, record.document, principal) if told else None
            self.store.commit([Change(name, None, expected=record.etag, event=event)])
            return record

        with recorded(self._recorder, {name: "delete"}, principal):
            record = self._again(delete_once, retry_on=(ConflictError,) if expected is None else ())
            self._bound.pop(name, None)
            self._cleaning.after_delete(Entry.of(record).spec)

    def _purge(self, name: str, force: bool, expected: str | None, principal: Who) -> None:
        if Principal.of(principal).may:
            require(Principal.of(principal), Role.ADMIN)

        def purge_once() -> int:
            versions = self.store.history(name)
            last = next((version for version in versions if not version.deleted), None)
            if last is None:
                if self._cleaning.after_purge(name):
                    return 0  # a crash came between, and now it is done
                raise ToolNotFoundError(name)
            record = self.store.get(name)
            self._check_deletion(record, last, force, expected, principal)
            code = sorted({digest for version in versions if (digest := digest_named(version.document))})
            spec = Entry.of(last).spec
            told = self._announce or code or self._cleaning.concerns(spec)
            event = self._event("tool.deleted", spec, last.document, principal) | {PURGED: code} if told else None
            self.store.commit([Change(name, None, record.etag if record else None, event, purge=True)])
            return len(versions)

        with recorded(self._recorder, {name: "delete"}, principal) as attempt:
            count = self._again(purge_once, retry_on=(ConflictError, ToolExistsError) if expected is None else ())
            self._bound.pop(name, None)
            self._cleaning.after_purge(name)
            attempt.detail = f"purged with its history of {count} versions" if count else "the purge is finished"

    def _check_deletion(
        self, record: Record | None, last: Record, force: bool, expected: str | None, principal: Who
    ) -> None:
        """``last`` is what the tool was, if there is no record of it any more."""
        name = last.name
        check_limits("delete", last.document, principal)
        if expected is not None and (record is None or record.etag != expected):
            raise ConflictError(f"{name!r} was changed by somebody else; read it again before you delete it")
        self._authoriser.check("delete", last.document, principal, before=last)
        if record is not None and not force and (users := users_of(name, self.store)):
            seen = [user for user in users if user in self.as_seen_by(principal)]
            raise ToolInUseError(name, seen, hidden=len(users) - len(seen))

    def recover(self) -> int:
        """Finish the deletions that a crash interrupted; how many there were. To be called at the start."""
        return self._cleaning.recover()

    def reseal(self, *, principal: Who = "") -> int:
        """Seal every credential again with the newest key; how many tools that touched."""
        names = [entry.name for entry in self.entries() if entry.document["credentials"]]
        for name in names:
            with recorded(self._recorder, {name: "update"}, principal) as attempt:
                self._again(lambda name=name: self._reseal_once(name), retry_on=(ConflictError,))  # type: ignore[misc]
                attempt.detail = "credentials sealed again"
        return len(names)

    def close(self) -> None:
        """Close the store and what was opened together with it."""
        for close in (self.store.close, *self._closing):
            close()

    # The one way in

    def _write(
        self,
        specs: Sequence[tuple[ToolSpec, Record | None]],
        *,
        force: bool,
        principal: Who,
        kept: Mapping[str, Any] | None = None,
        owner: str | None = None,
    ) -> list[Entry]:
        """Each spec over the record that was read before, in one commit.

        Masked credentials are those in ``kept``; ``owner`` is whose a tool becomes that is not there.
        """
        owner = Principal.of(principal).owns if owner is None else owner
        prepared = [self._prepared(spec, record, kept, owner, force, principal) for spec, record in specs]
        records = self.store.commit([change for change, _ in prepared])
        entries = [Entry.of(record, told) for record, (_, told) in zip(records, prepared, strict=True)]
        for entry in entries:
            if entry.unserved:
                _log.warning("%r names %s", entry.name, unserved_rules(entry.unserved))
        return entries

    def _prepared(
        self,
        spec: ToolSpec,
        record: Record | None,
        kept: Mapping[str, Any] | None,
        owner: str,
        force: bool,
        principal: Who,
    ) -> tuple[Change, Told]:
        spec = with_kept_link(spec, record.document) if record else spec
        document = spec.to_dict()
        unserved = self._authoriser.check("update" if record else "create", document, principal, before=record)
        told = self._judged(spec, record, unserved)
        broke = broken_by(Entry.of(record).spec, spec) if record else []
        if broke and not force:
            raise BreakingChangeError(spec.name, broke)
        stored = kept or (record.document if record else secrets.NOTHING)
        document["credentials"] = secrets.sealed(spec, stored, self._seal)
        event = None
        if self._announce:
            kind: EventKind = "tool.updated" if record else "tool.created"
            event = self._event(kind, spec, document, principal, record.document if record else None)
        change = Change(spec.name, document, record.etag if record else None, event, None if record else owner)
        return change, Told(tuple(broke), secrets.emptied(spec, stored), told)

    def _judged(self, spec: ToolSpec, record: Record | None, unserved: tuple[str, ...]) -> tuple[str, ...]:
        """The rules to tell of; UnknownPolicyRuleError if the write is the first to name one, and that is refused."""
        if self._unknown_rules == "ignore":
            return ()
        before = rules_named(record.document) if record else ()
        if self._unknown_rules == "refuse" and (first := [rule for rule in unserved if rule not in before]):
            raise UnknownPolicyRuleError(spec.name, first)
        return unserved

    def _event(
        self, kind: EventKind, spec: ToolSpec, document: dict[str, Any], principal: Who,
        previous: dict[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        who = Principal.of(principal).name
        return announcement(kind, spec, document, at=self._clock(), principal=who, previous=previous)

    def _reseal_once(self, name: str) -> None:
        record = self._record(name)
        document = {**record.document, "credentials": secrets.resealed(record.document, self._seal)}
        self.store.commit([Change(name, document, expected=record.etag)])

    def _again(self, step: Callable[[], _T], *, retry_on: tuple[type[Exception], ...]) -> _T:
        for attempt in range(1, _TRIES):
            try:
                return step()
            except retry_on as error:
                if isinstance(error, ToolInUseError):
                    raise
            time.sleep(random.uniform(0, 0.002 * attempt))  # noqa: S311 - so that rivals do not meet again
        return step()

    def _records(self, specs: Iterable[ToolSpec]) -> dict[str, Record | None]:
        return {spec.name: self.store.get(spec.name) for spec in specs}


def _refuse_repeated(names: list[str]) -> None:
    repeated = next((name for name, times in Counter(names).items() if times > 1), None)
    if repeated is not None:
        raise ToolExistsError(repeated, "it is given twice in the same list")


def _written(entries: Sequence[Entry]) -> str:
    said = ", ".join(f"version {entry.version}" for entry in entries[:3])
    if broke := [line for entry in entries for line in entry.broke]:
        said += f"; forced although {'; '.join(broke)}"
    if emptied := [key for entry in entries for key in entry.emptied]:
        said += f"; emptied the credentials {', '.join(map(repr, emptied))}"
    if unserved := [rule for entry in entries for rule in entry.unserved]:
        said += f"; names {unserved_rules(unserved)}"
    return said
