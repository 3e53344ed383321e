"""Run the fuzz targets for minutes: `make fuzz`, or python -m tests.attacks.fuzz [TARGET ...] [TARGET:FILE ...]

FUZZ_SECONDS is how long each one runs. What fails is kept in .cache/fuzz/TARGET and its name printed; TARGET:FILE tries
a kept input again. Every run goes on where numbers have not been yet: FUZZ_SEED says from where.
"""

import faulthandler
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.attacks.fuzz import TARGETS
from tests.attacks.fuzz.target import Attack, Target, tried

_KEPT = Path(".cache/fuzz")
_HANG_SECONDS = 300
_PROGRESS_SECONDS = 10


def main(words: list[str]) -> int:
    chosen = {name: path for name, _, path in (word.partition(":") for word in words or TARGETS)}
    unknown = chosen.keys() - TARGETS.keys()
    if unknown:
        print(f"fuzz: there is no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    failed = 0
    for name, path in chosen.items():
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, TARGETS[name].opened(Path(folder)) as attack:
            failed += _again(attack, Path(path)) if path else _fuzzed(TARGETS[name], attack)
    return min(1, failed)


def _again(attack: Attack, path: Path) -> int:
    tried(attack, path.read_bytes())
    print(f"{path}: no fault")
    return 0


def _fuzzed(target: Target, attack: Attack) -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "120"))
    number = first = int(os.environ.get("FUZZ_SEED", time.time_ns() // 1_000_000))
    kept = _KEPT / target.name
    kept.mkdir(parents=True, exist_ok=True)
    under_way = kept / "under-way"
    failed, began = 0, time.monotonic()
    said = began
    while time.monotonic() < began + seconds:
        content = target.input(number)
        under_way.write_bytes(content)  # what kills this process is there afterwards
        faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)
        failed += not _held(target, attack, content, number)
        number += 1
        if time.monotonic() > said + _PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"{target.name}: {number - first:,} inputs, {failed} faults, {said - began:.0f} s", flush=True)
    faulthandler.cancel_dump_traceback_later()
    under_way.unlink()
    print(f"{target.name}: {number - first:,} inputs from number {first}, {failed} faults", flush=True)
    return failed


def _held(target: Target, attack: Attack, content: bytes, number: int) -> bool:
    try:
        tried(attack, content)
    except Exception:
        path = _KEPT / target.name / f"{number}"
        path.write_bytes(content)
        print(f"{target.name}: a fault, kept in {path}", flush=True)
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
