"""What there is to see from inside: the system, the interpreter with its packages, the bundle, an empty scratch.

The same list makes the file system of a run, or, where that cannot be had, the list that Landlock holds it to.
"""

import os
import sys
from dataclasses import dataclass

CODE, SCRATCH = "/run/bundle/code", "/run/bundle/scratch"
OUTPUT = "output.json"
"""Where in its scratch a program leaves its result."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_PREFIX_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
ETC = (
    "ld.so.cache", "localtime", "alternatives", "mime.types", "ca-certificates", "ssl/certs", "ssl/openssl.cnf",
    "pki/tls/certs", "pki/ca-trust/extracted", "crypto-policies",
)  # fmt: skip
DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass(frozen=True)
class View:
    """``shown`` are paths that can be read inside, and where each comes from; ``links`` what is a link there as here.

    ``hidden`` are paths below those shown that are covered; ``code`` is the folder of the bundle.
    """

    shown: dict[str, str]
    links: dict[str, str]
    hidden: tuple[str, ...]
    code: str


def view_of(code: str, hidden: list[str]) -> View:
    """Looked up before anything is moved, so that every link on the way leads where it leads now."""
    wanted = [*SYSTEM, *_interpreter(), *(f"/etc/{name}" for name in ETC)]
    links = {path: os.readlink(path) for path in wanted if _is_link(path)}
    shown: dict[str, str] = {}
    for path in wanted:
        if path not in links and os.path.exists(path) and not any(within(path, other) for other in shown):
            shown[path] = os.path.realpath(path)
    covered = [
        path + real[len(source) :]
        for real in map(os.path.realpath, hidden)
        for path, source in shown.items()
        if within(real, source)
    ]
    return View(shown, links, tuple(covered), os.path.realpath(code))


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_link(path: str) -> bool:
    """Whether it stays a link: those of the root folder, such as /bin, and those to a neighbour, such as lib64."""
    if not os.path.islink(path):
        return False
    return path.count("/") == 1 or "/" not in os.readlink(path)


def _interpreter() -> list[str]:
    """Programs and packages only: whatever else lies in an environment's folder is not the bundle's business."""
    prefixes = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    return [f"{prefix}/{part}" for prefix in prefixes for part in _PREFIX_PARTS]
