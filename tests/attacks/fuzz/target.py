"""What a fuzz target is, and what counts as a fault."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.attacks.fuzz.mutation import damaged

from toolcrib.core.errors import ToolcribError

Attack = Callable[[bytes], None]
"""Takes any bytes. Raises for a real fault alone: what the code under attack refuses in its own words is none."""

PROCESSOR_SECONDS = 10.0
"""Of one input of 64 KB; a thousand times what it takes where the work is linear. Processor time: a busy machine is
no fault."""


class Fault(AssertionError):
    """What an attack has found."""


@dataclass(frozen=True, slots=True)
class Target:
    """``opened`` makes the attack, in a folder of its own.

    ``tries`` is how many inputs `make test` gives it, in so many ``shares`` that several workers can take them.
    """

    name: str
    corpus: tuple[bytes, ...]
    words: tuple[bytes, ...]
    opened: Callable[[Path], AbstractContextManager[Attack]]
    tries: int
    shares: int = 4

    def input(self, number: int) -> bytes:
        """The good ones come first, then what is made of them."""
        if number < len(self.corpus):
            return self.corpus[number]
        return damaged(self.corpus, self.words, Random(f"{self.name} {number}"))


def tried(attack: Attack, content: bytes) -> None:
    """One input; Fault if it took too long."""
    began = time.thread_time()
    attack(content)
    spent = time.thread_time() - began
    if spent > PROCESSOR_SECONDS:
        raise Fault(f"{len(content)} bytes took {spent:.0f} s of processor time")


@contextmanager
def refusing() -> Iterator[None]:
    """What is refused is no fault, unless the refusal says that the service is at fault."""
    try:
        yield
    except ToolcribError as error:
        if error.answer.http == 500:
            raise Fault(f"answered as a defect: {error!r}") from error
