"""What is wrong with a file that should be a shared library."""

from __future__ import annotations

import functools
import platform
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

BUILD = (
    'Build it from a crate that depends on jax-callable and has `crate-type = ["cdylib"]` under '
    "[lib] in Cargo.toml"
)

_ELF = b"\x7fELF"
_MAC = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_MACHINES = {3: "x86", 40: "Arm", 62: "x86_64", 183: "aarch64", 243: "RISC-V"}
_SHARED, _EXECUTABLE = "a shared library", "an executable"
_KINDS = {1: "an object file (.o)", 2: _EXECUTABLE, 3: _SHARED, 4: "a core dump"}
_PT_LOAD, _PT_DYNAMIC = 1, 2
_FLAGS_1, _IS_EXECUTABLE = 0x6FFFFFFB, 0x08000000
_SMALLEST = 52
_TRUNCATED = "is truncated: its build or copy did not finish. Build or copy it again"


def complaint(content: bytes) -> str | None:
    """Looks at a file before it is opened.

    Opening a truncated library kills the process with a bus error, so this must come first.

    Args:
        content: The whole file.

    Returns:
        What is wrong and what to do, or None if `dlopen` can be asked.
    """
    if content.startswith(_ELF):
        return _elf_complaint(content)
    if content.startswith(_MAC):
        # The system's loader knows best, where there is one.
        return None if sys.platform == "darwin" else _wrong_machine("macOS", _here())
    if content.startswith(b"!<arch>\n"):
        kind = "a Rust library (.rlib)" if b"lib.rmeta/" in content else "an archive (.a)"
        return f"is {kind} to be linked into others, not a shared library. {BUILD}"
    return f"is not a shared library: {_beginning(content)}. {BUILD}"


def _elf_complaint(content: bytes) -> str | None:
    if len(content) < _SMALLEST:
        return _TRUNCATED
    found, here = _machine(content), _here()
    if found != here:
        return _wrong_machine(found, here)
    if found.endswith("32-bit"):
        return None  # Its headers are of another form than those below.
    try:
        kind = None if _is_truncated(content) else _kind(content)
    except struct.error:
        kind = None
    if kind is None:
        return _TRUNCATED
    return f"is {kind}, not a shared library. {BUILD}" if kind != _SHARED else None


def _wrong_machine(found: str, here: str) -> str:
    return (
        f"is built for {found}, and this Python for {here}. Build it on this machine, or with "
        f"cargo build --release --target {platform.machine()}-unknown-linux-gnu"
    )


@functools.cache
def _here() -> str:
    """What this process is built for, in the words of `_machine`."""
    try:
        with Path("/proc/self/exe").open("rb") as file:
            return _machine(file.read(20))
    except (OSError, struct.error):
        return f"{platform.system()} {platform.machine()}"


def _machine(content: bytes) -> str:
    """Such as "x86_64, 64-bit"."""
    bits, order = struct.unpack_from("BB", content, 4)
    (machine,) = struct.unpack_from("<H" if order == 1 else ">H", content, 18)
    name = _MACHINES.get(machine, f"machine {machine} of ELF")
    return f"{name}, {'64-bit' if bits == 2 else '32-bit'}"


def _segments(content: bytes, wanted: int) -> Iterator[tuple[int, int]]:
    """Where in the file the segments of a kind are, and their lengths."""
    (headers,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    for i in range(count):
        kind, offset, length = struct.unpack_from("<I4xQ16xQ", content, headers + i * size)
        if kind == wanted:
            yield offset, length


def _is_truncated(content: bytes) -> bool:
    return any(offset + length > len(content) for offset, length in _segments(content, _PT_LOAD))


def _kind(content: bytes) -> str:
    (number,) = struct.unpack_from("<H", content, 16)
    for offset, length in _segments(content, _PT_DYNAMIC):
        for at in range(offset, offset + length, 16):
            tag, value = struct.unpack_from("<QQ", content, at)
            if tag == _FLAGS_1 and value & _IS_EXECUTABLE:
                return _EXECUTABLE  # One that can be anywhere in memory.
    return _KINDS.get(number, f"a file of kind {number} of ELF")


def _beginning(content: bytes) -> str:
    if not content:
        return "it is empty"
    line = content[:200].partition(b"\n")[0].rstrip(b"\r")
    if line and all(32 <= byte < 127 or byte == 9 for byte in line):
        return f"it is a text that begins with {line[:60].decode()!r}"
    return f"it begins with the bytes {content[:8].hex(' ')}"
