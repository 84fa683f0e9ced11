"""What is wrong with a file that should be a shared library."""

from __future__ import annotations

import struct

_LITTLE_ENDIAN_64 = b"\x7fELF\x02\x01"
_PT_LOAD = 1


def complaint(content: bytes) -> str | None:
    """Looks at a file before it is opened.

    Opening a truncated library kills the process with a bus error, so this must come first.

    Args:
        content: The whole file.

    Returns:
        What is wrong, or None if `dlopen` can be asked.
    """
    if content.startswith(b"!<arch>"):
        return "is a static library (.a or .rlib), not a shared one"
    if content.startswith(_LITTLE_ENDIAN_64):
        return "is truncated (its build or copy did not finish)" if _is_truncated(content) else None
    if content.startswith((b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")):
        return None  # another kind of machine, or macOS: the system's loader knows best
    return "is not a shared library"


def _is_truncated(content: bytes) -> bool:
    try:
        (headers,) = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        for i in range(count):
            kind, offset, length = struct.unpack_from("<I4xQ16xQ", content, headers + i * size)
            if kind == _PT_LOAD and offset + length > len(content):
                return True
    except struct.error:
        return True
    return False
