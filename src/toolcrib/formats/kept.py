"""Definitions that are made once and handed out often.

To copy thousands of them takes as long as to make them. So all callers share one copy, which nobody can change, and
whoever looks into his list gets a copy of his own: with the first item that is taken out of it, it is a list of plain
dicts that nobody else has. What reads the memory of a list without asking it, such as pydantic, gets the shared copy.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn, SupportsIndex, overload

from toolcrib.formats.handover import Handover

Definition = dict[str, Any]


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("this definition is shared with others; change a copy of it: copy.deepcopy(definition)")


class _SharedDict(dict[str, Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, _: object) -> Definition:
        return _own(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (_own(self),)


class _SharedList(list[Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = _refuse
    pop = remove = reverse = sort = _refuse

    def __deepcopy__(self, _: object) -> list[Any]:
        return _own(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (_own(self),)


def _shared(value: Any) -> Any:
    if type(value) is dict:
        made = _SharedDict(value)
        for key, item in value.items():
            if type(item) is dict or type(item) is list:
                dict.__setitem__(made, key, _shared(item))
        return made
    return _SharedList([_shared(item) for item in value]) if type(value) is list else value


def _own(value: Any) -> Any:
    if type(value) is _SharedDict:
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if type(value) is _SharedList else value


class KeptDefinitions(list[Definition]):
    """A list that is its owner's to change, and so is all that is taken out of it."""

    __slots__ = ("_kept",)

    def __init__(self, items: Iterable[Definition] = (), kept: KeptHandover | None = None) -> None:
        super().__init__(items)
        self._kept = kept

    def _made_own(self) -> None:
        if (kept := self._kept) is not None:
            self._kept = None
            copies = dict(zip(map(id, kept.shared), kept.copies(), strict=True))
            super().__setitem__(slice(None), [copies.get(id(item), item) for item in super().__iter__()])

    @overload
    def __getitem__(self, index: SupportsIndex) -> Definition: ...
    @overload
    def __getitem__(self, index: slice) -> list[Definition]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        self._made_own()
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Definition]:
        self._made_own()
        return super().__iter__()

    def __reversed__(self) -> Iterator[Definition]:
        self._made_own()
        return super().__reversed__()

    def __add__(self, other: Any) -> Any:
        return [*self, *other]

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self]

    def __mul__(self, times: SupportsIndex) -> list[Definition]:
        return list(self) * times

    __rmul__ = __mul__

    def copy(self) -> list[Definition]:
        return list(self)

    def pop(self, index: SupportsIndex = -1) -> Definition:
        self._made_own()
        return super().pop(index)

    def sort(self, **options: Any) -> None:
        self._made_own()
        super().sort(**options)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def __reduce_ex__(self, _: SupportsIndex) -> tuple[Any, ...]:
        return self.__reduce__()


class KeptHandover:
    """A handover that is given to many; the one that it is made of stays its caller's."""

    __slots__ = ("_bytes", "_handed", "shared")

    def __init__(self, handed: Handover) -> None:
        self._handed = replace(handed, definitions=[], names=dict(handed.names))
        self._bytes = marshal.dumps(handed.definitions)
        self.shared: list[Any] = [_shared(each) for each in handed.definitions]

    def copies(self) -> list[Definition]:
        copies: list[Definition] = marshal.loads(self._bytes)  # noqa: S302 - of what was just made here
        return copies

    def given(self) -> Handover:
        return replace(self._handed, definitions=KeptDefinitions(self.shared, self), names=dict(self._handed.names))
