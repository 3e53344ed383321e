"""A file system of a run's own: an empty one in memory, in which only what the view lists appears, read-only."""

import os
from pathlib import Path

from toolcrib_box import kernel
from toolcrib_box.namespaces import INSIDE
from toolcrib_box.view import CODE, DEVICES, SCRATCH, View

_OLD = "/.outside"
_READ_ONLY = kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NODEV
_ACCOUNTS = {
    "passwd": f"root:x:0:0::/:/bin/false\nbundle:x:{INSIDE}:{INSIDE}::{SCRATCH}:/bin/sh\n",
    "group": f"root:x:0:\nbundle:x:{INSIDE}:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hostname": "bundle\n",
}


def make_file_system(view: View, limits: dict[str, int], own: int) -> None:
    """Become the root of it; what was the root before is out of reach when this returns."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # Any folder will do as a place to begin: it is uncovered again as soon as the new root has become the root.
    place = next(folder for folder in ("/tmp", "/mnt", "/usr") if os.path.isdir(folder))  # noqa: S108
    kernel.mount("root", place, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,nr_inodes=4096,mode=755")
    os.mkdir(place + _OLD)
    kernel.pivot_root(place, place + _OLD)
    os.chdir("/")
    for path, source in view.shown.items():
        _bind(_OLD + source, path, _READ_ONLY)
    for path, target in view.links.items():
        if not os.path.lexists(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(target, path)
    for path in view.hidden:
        _hide(path)
    _bind(_OLD + view.code, CODE, _READ_ONLY)
    _make_scratch(limits, own)
    _make_devices()
    _make_etc()
    _make_proc()
    kernel.unmount(_OLD)
    os.rmdir(_OLD)
    kernel.restrict_mount("/", _READ_ONLY)


def _hide(path: str) -> None:
    """An empty folder, or an empty file, in front of it."""
    if os.path.isdir(path):
        kernel.mount("hidden", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=4k,nr_inodes=2,mode=555")
    elif os.path.exists(path):
        kernel.mount(f"{_OLD}/dev/null", path, None, kernel.MS_BIND)


def _bind(source: str, target: str, attributes: int) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)
    kernel.restrict_mount(target, attributes, below=True)


def _make_scratch(limits: dict[str, int], own: int) -> None:
    os.makedirs(SCRATCH)
    size, files = limits["scratch_bytes"], limits["scratch_files"]
    options = f"size={size},nr_inodes={files},mode=700,uid={own},gid={own}"
    kernel.mount("scratch", SCRATCH, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for path in ("/tmp", "/var/tmp"):  # noqa: S108
        if not os.path.exists(path):  # the interpreter may live there
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(SCRATCH, path)


def _make_devices() -> None:
    for name in DEVICES:
        _bind(f"{_OLD}/dev/{name}", f"/dev/{name}", kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NOEXEC)
    links = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "shm": SCRATCH}
    for name, target in links.items():
        os.symlink(target, f"/dev/{name}")


def _make_etc() -> None:
    Path("/etc").mkdir(exist_ok=True)
    for name, text in _ACCOUNTS.items():
        Path("/etc", name).write_text(text, encoding="ascii")


def _make_proc() -> None:
    """Of the processes inside, to read: nobody sets anew who dies first where memory runs out.

    Some containers hide parts of theirs; there the kernel refuses it, and we do without.
    """
    os.mkdir("/proc")
    try:
        flags = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("proc", "/proc", "proc", flags)
    except PermissionError:
        return
