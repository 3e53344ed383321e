"""Each fuzz target for some seconds, the same inputs every time. `make fuzz` gives them minutes and new ones."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.attacks.fuzz import TARGETS
from tests.attacks.fuzz.filters import opened_on
from tests.attacks.fuzz.target import Attack, Target, tried

SHARES = [(name, share) for name, target in TARGETS.items() for share in range(target.shares)]


def hold(target: Target, attack: Attack, numbers: Iterable[int]) -> None:
    for number in numbers:
        try:
            tried(attack, target.input(number))
        except Exception as error:
            error.add_note(f"{target.name}, input {number}: {target.input(number)[:2000]!r}")
            raise


@pytest.mark.parametrize(("name", "share"), SHARES)
def test_no_bytes_break_it(name: str, share: int, tmp_path: Path) -> None:
    target = TARGETS[name]
    with target.opened(tmp_path) as attack:
        hold(target, attack, range(share, target.tries, target.shares))


def test_no_filter_finds_something_else_on_mongodb(mongo_database_url: str) -> None:
    with opened_on(mongo_database_url) as attack:
        hold(TARGETS["filters"], attack, range(600))
