"""The calls of Linux that Python has no words for. Each raises OSError, as those of ``os`` do."""

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Any

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47

MACHINE = platform.machine()
_NUMBERS = {"x86_64": {"capset": 126, "pivot_root": 155}, "aarch64": {"capset": 91, "pivot_root": 41}}
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MNT_DETACH = 2
_CAPABILITY_VERSION = 0x20080522
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_linux("unshare")(flags))


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    _check(
        _linux("mount")(
            source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), data.encode()
        ),
        target,
    )


def unmount(target: str) -> None:
    """Take it away as soon as nobody uses it any more."""
    _check(_linux("umount2")(target.encode(), _MNT_DETACH), target)


def restrict_mount(target: str, attributes: int, *, below: bool = False) -> None:
    """Make a mount, and those ``below`` it, read-only and so on. Needs Linux 5.12."""
    request = struct.pack("QQQQ", attributes, 0, 0, 0)
    syscall(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE if below else 0, request, len(request))


def pivot_root(new: str, old: str) -> None:
    syscall(number("pivot_root"), new.encode(), old.encode())


def prctl(option: int, value: int = 0, other: int = 0) -> None:
    _check(_linux("prctl")(option, ctypes.c_ulong(value), ctypes.c_ulong(other), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def drop_bounding_set() -> None:
    """So that no program brings a capability back. While one still has the right to: before the user changes."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.EPERM}:  # the kernel knows no more of them; we have none to drop
                return
            raise


def give_up_capabilities() -> None:
    prctl(PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    syscall(number("capset"), struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24))


def syscall(call: int, *arguments: Any) -> int:
    """A call by its number; numbers are passed as long, bytes by their address."""
    given = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _check(_linux("syscall")(ctypes.c_long(call), *given))


def number(name: str) -> int:
    """The number of a call that differs from machine to machine."""
    try:
        return _NUMBERS[MACHINE][name]
    except KeyError:
        raise OSError(errno.ENOSYS, f"not known for {MACHINE}") from None


def _linux(name: str) -> Any:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux has it")
    return getattr(_libc, name)


def _check(result: int, path: str | None = None) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path) if path else OSError(code, os.strerror(code))
    return result
