"""Opening a shared library, and the words for why it cannot be opened."""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import shutil
import tempfile
from pathlib import Path

from jax_callable.errors import NotALibraryError


def dlopen(path: Path) -> ctypes.CDLL:
    """Opens a library, the file as it is now.

    Raises:
        NotALibraryError: The system cannot open it.
    """
    try:
        if _is_open(path):
            # dlopen() would return the old code: a rebuilt library needs a path of its own.
            path = _private_copy(path)
        return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise NotALibraryError(
            f"{path}: this machine cannot open the library: {_explain(str(error))} ({error})"
        ) from error


def _is_open(path: Path) -> bool:
    try:
        ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _private_copy(path: Path) -> Path:
    folder = tempfile.mkdtemp(prefix="jax_callable-")
    # Kept to the end of the process: backtraces read the file.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(shutil.copy2(path, folder))


def _explain(error: str) -> str:
    """What the loader's text means, and what to do."""
    if found := re.search(r"version `GLIBC_([\d.]+)' not found", error):
        return (
            f"it was built on a newer system, with glibc {found[1]} or later, and this one has "
            f"{os.confstr('CS_GNU_LIBC_VERSION')}. Build it here, or on the oldest system that it "
            "should run on"
        )
    if found := re.match(r"([^\s:]+): cannot open shared object file: No such file", error):
        return (
            f"it needs {found[1]}, which is not where the loader looks. Install that, or put its "
            "folder into LD_LIBRARY_PATH before Python starts"
        )
    if found := re.search(r"undefined symbol: (\w+)", error):
        return (
            f"it uses {found[1]}, which no library that it was linked with defines. Link the one "
            "that does, such as by cargo:rustc-link-lib in build.rs"
        )
    return "it was built for another one, or something it needs is missing"
