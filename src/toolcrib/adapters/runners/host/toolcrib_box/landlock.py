"""Landlock: what may be opened, reached and signalled, kept by the kernel for a process and all that it starts."""

import os
import struct

from toolcrib_box import kernel
from toolcrib_box.view import DEVICES, SCRATCH, View

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 5: 1 << 16}
"""Since which version of Landlock there are all rights below which bit."""
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_BIND_AND_CONNECT, _SIGNALS_AND_ABSTRACT_SOCKETS = 3, 3


def restrict(view: View, scratch: str, *, mounted: bool, network: bool) -> None:
    """From now on: read what the view shows, write in the scratch, connect nowhere unless it has a ``network``."""
    version = kernel.syscall(_CREATE, 0, 0, _VERSION)
    known = next(bit for since, bit in sorted(_RIGHTS.items(), reverse=True) if version >= since) - 1
    words = [known]
    if version >= _NETWORK_SINCE:
        words.append(0 if network else _BIND_AND_CONNECT)
    if version >= _SCOPES_SINCE:
        words.append(_SIGNALS_AND_ABSTRACT_SOCKETS)
    request = struct.pack(f"{len(words)}Q", *words)
    ruleset = kernel.syscall(_CREATE, request, len(request), 0)
    try:
        for path in ("/",) if mounted else (*view.shown.values(), view.code):
            _allow(ruleset, path, _READ & known)
        _allow(ruleset, SCRATCH if mounted else scratch, known & ~(_MAKE_CHAR | _MAKE_BLOCK))
        for name in DEVICES:
            _allow(ruleset, f"/dev/{name}", known & _OF_FILES & ~_EXECUTE)
        kernel.syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        kernel.syscall(_ADD, ruleset, _BENEATH, struct.pack("=Qi", rights, handle), 0)
    finally:
        os.close(handle)
