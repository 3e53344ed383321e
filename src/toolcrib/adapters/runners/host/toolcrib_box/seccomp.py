"""Seccomp: which calls of the kernel there are. What no tool needs, and what holes were found in, is not there."""

import ctypes
import errno
import platform
import struct

from toolcrib_box import kernel

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_MODE_FILTER = 2
_X32 = 0x40000000
_NAMESPACES = (
    kernel.NEWNS | kernel.NEWCGROUP | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWUSER | kernel.NEWPID | kernel.NEWNET
)
_FAMILIES = (1, 2, 10, 16)  # Unix, IPv4, IPv6, and netlink, by which libraries ask for the addresses of the machine
_TERMINAL_TRICKS = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: typing into somebody else's terminal

_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447, "open_tree_attr": 467,
}  # fmt: skip
_REFUSED = {
    "x86_64": {
        "ptrace": 101, "syslog": 103, "uselib": 134, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155,
        "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
        "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
        "init_module": 175, "delete_module": 176, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212,
        "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
        "migrate_pages": 256, "unshare": 272, "move_pages": 279, "perf_event_open": 298, "fanotify_init": 300,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308,
        "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320,
        "bpf": 321, "userfaultfd": 323,
    },
    "aarch64": {
        "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51,
        "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142, "sethostname": 161,
        "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "add_key": 217, "request_key": 218, "keyctl": 219,
        "swapon": 224, "swapoff": 225, "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241,
        "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "kexec_file_load": 294,
    },
}  # fmt: skip
_LOOKED_INTO = {
    "x86_64": {"ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "clone3": 435},
    "aarch64": {"ioctl": 29, "socket": 198, "socketpair": 199, "clone": 220, "clone3": 435},
}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def filter_calls() -> None:
    """From now on, for this process and all that it starts."""
    code = program(platform.machine())
    memory = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(memory)))
    kernel.prctl(kernel.PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(head))


def program(machine: str) -> bytes:
    """The filter in the kernel's own code, for one kind of machine. OSError if we do not know its calls."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"the calls of {machine} are not known")
    looked_into = _LOOKED_INTO[machine]
    steps = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER_AT),
        *_answered(_step(_AT_LEAST, _X32, 0, 1), errno.ENOSYS),
        *_answered(_step(_EQUAL, looked_into["clone3"], 0, 1), errno.ENOSYS),  # its flags cannot be seen; clone's can
    ]
    for number in sorted({*_EVERYWHERE.values(), *_REFUSED[machine].values()}):
        steps += _answered(_step(_EQUAL, number, 0, 1), errno.EPERM)
    steps += _of(looked_into["clone"], 0, _answered(_step(_ANY_BIT, _NAMESPACES, 0, 1), errno.EPERM))
    tricks = [step for trick in _TERMINAL_TRICKS for step in _answered(_step(_EQUAL, trick, 0, 1), errno.EPERM)]
    steps += _of(looked_into["ioctl"], 1, tricks)
    families = [_step(_EQUAL, family, len(_FAMILIES) - at, 0) for at, family in enumerate(_FAMILIES)]
    for name in ("socket", "socketpair"):
        steps += _of(looked_into[name], 0, [*families, _step(_RETURN, _REFUSE | errno.EAFNOSUPPORT)])
    return b"".join([*steps, _step(_RETURN, _ALLOW)])


def _of(number: int, argument: int, checks: list[bytes]) -> list[bytes]:
    """Checks of one argument of one call; what passes them, and every other call, goes on after them."""
    looked = [_step(_LOAD, _ARGUMENTS_AT + 8 * argument), *checks, _step(_LOAD, _NUMBER_AT)]
    return [_step(_EQUAL, number, 0, len(looked)), *looked]


def _answered(check: bytes, code: int) -> list[bytes]:
    """What the check finds is answered with an error; it skips one step for everything else."""
    return [check, _step(_RETURN, _REFUSE | code)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
