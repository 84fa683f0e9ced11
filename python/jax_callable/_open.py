"""Finding and opening a library, without JAX."""

from __future__ import annotations

import ctypes
import difflib
import hashlib
import importlib.util
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jax_callable._dlopen import dlopen
from jax_callable._elf import BUILD, complaint
from jax_callable._manifest import Manifest, check_abi, parse
from jax_callable.errors import LibraryNotFoundError, MissingSymbolsError, NotALibraryError

INSTANTIATE, INITIALIZE, EXECUTE = 0, 2, 3
"""XLA's numbers for the stages of a handler."""

_SUFFIXES = (".so", ".dylib")
_SYMBOLS = (
    "jax_callable_abi_version",
    "jax_callable_manifest",
    "jax_callable_handler",
    "jax_callable_preload",
    "jax_callable_graphs",
    "jax_callable_set_graph_cache_max",
    "jax_callable_clear_graphs",
    "jax_callable_live_call_sites",
)
_lock = threading.Lock()
_opened: dict[str, OpenLibrary] = {}


@dataclass(frozen=True)
class OpenLibrary:
    """A library in this process. It is never closed: XLA keeps pointers into it.

    Attributes:
        path: Where it was found.
        digest: SHA-256 of its content.
        manifest: What it says about itself.
        handle: The open library.
    """

    path: Path
    digest: str
    manifest: Manifest
    handle: ctypes.CDLL

    def handler(self, index: int, stage: int) -> int | None:
        """The address of a handler's function for one stage, or None if it has none."""
        function = self.handle.jax_callable_handler
        function.argtypes, function.restype = (ctypes.c_uint32, ctypes.c_uint32), ctypes.c_void_p
        address: int | None = function(index, stage)
        return address

    def preload(self, index: int, ordinal: int) -> str | None:
        """Loads the CUDA modules of a handler on a device, if they are not there yet.

        Args:
            index: The handler's place in the table.
            ordinal: The device, as CUDA counts those that this process sees.

        Returns:
            What went wrong, or None.
        """
        function = self.handle.jax_callable_preload
        text_type = ctypes.c_char * 4096
        function.argtypes = (ctypes.c_uint32, ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t)
        function.restype = ctypes.c_size_t
        text = text_type()
        size: int = function(index, ordinal, text, len(text))
        return text.raw[:size].decode(errors="replace") if size else None

    def graphs(self, index: int) -> str:
        """The limit and the statistics of a CUDA handler's graphs, as JSON.

        Args:
            index: The handler's place in the table.
        """
        function = self.handle.jax_callable_graphs
        text_type = ctypes.c_char * 4096
        function.argtypes = (ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)
        function.restype = ctypes.c_size_t
        text = text_type()
        size: int = function(index, text, len(text))
        return text.raw[:size].decode()

    def set_graph_cache_max(self, index: int, limit: int) -> None:
        """Sets how many graphs a CUDA handler keeps at most.

        Args:
            index: The handler's place in the table; -1 for the default of the library.
            limit: The number; -1 for no limit, -2 for what the handler says itself.
        """
        function = self.handle.jax_callable_set_graph_cache_max
        function.argtypes = (ctypes.c_uint32, ctypes.c_int64)
        function.restype = ctypes.c_uint32
        function(index & 0xFFFFFFFF, limit)

    def clear_graphs(self, index: int) -> None:
        """Gives up all graphs of a CUDA handler."""
        function = self.handle.jax_callable_clear_graphs
        function.argtypes, function.restype = (ctypes.c_uint32,), ctypes.c_uint32
        function(index)

    def live_call_sites(self) -> int:
        """How many call sites hold state now."""
        function = self.handle.jax_callable_live_call_sites
        function.argtypes, function.restype = (), ctypes.c_uint64
        return int(function())


def opened_libraries() -> list[OpenLibrary]:
    """The libraries of this process."""
    with _lock:
        return list(_opened.values())


def open_library(path_or_name: str | os.PathLike[str]) -> OpenLibrary:
    """Opens a library; the same content gives the same object.

    Args:
        path_or_name: A path, or the name of an importable package that holds the library.

    Raises:
        LoadError: One of the classes of `jax_callable.errors`, by what is wrong.
    """
    path = _resolve(path_or_name)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LibraryNotFoundError(f"{path}: cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(content).hexdigest()
    with _lock:
        if digest not in _opened:
            problem = complaint(content)
            if problem:
                raise NotALibraryError(f"{path}: {problem}")
            handle = dlopen(path)
            _check_symbols(handle, path, content)
            manifest = _read_manifest(handle, path)
            _opened[digest] = OpenLibrary(path, digest, manifest, handle)
        return _opened[digest]


def _resolve(path_or_name: str | os.PathLike[str]) -> Path:
    path = Path(path_or_name)
    if path.is_file():
        return path.resolve()
    if path.is_dir():
        raise LibraryNotFoundError(f"{path}: is a directory; {_in_folder(path)}")
    looks_like_path = os.sep in str(path_or_name) or path.suffix in _SUFFIXES
    if isinstance(path_or_name, str) and not looks_like_path:
        return _find_in_package(path_or_name)
    names = [each.name for each in _libraries(path.parent)]
    close = difflib.get_close_matches(path.name, names, n=1)
    hint = f" Did you mean {path.with_name(close[0])}?" if close else ""
    raise LibraryNotFoundError(
        f"{path}: no such file.{hint} Build the library first (cargo build --release); cargo puts "
        "it at target/release/lib<crate_name>.so, with `_` for each `-` of the crate's name"
    )


def _libraries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in _SUFFIXES)


def _in_folder(path: Path) -> str:
    release = path / "target" / "release"
    found = _libraries(path) or _libraries(release)
    if found:
        return f"name the library in it: {' or '.join(map(str, found[:3]))}"
    if (path / "Cargo.toml").is_file():
        return f"build it (cargo build --release), and name {release / 'lib<crate_name>.so'}"
    return f"name the library in it, such as {path / 'libops.so'}"


def _find_in_package(name: str) -> Path:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise LibraryNotFoundError(
            f"{name}: neither a file nor an importable package. Give the path of the library, or "
            "install the package into this Python environment"
        )
    candidates = [Path(spec.origin)] if spec.origin else []
    for folder in spec.submodule_search_locations or ():
        candidates += sorted(Path(folder).iterdir())
    # The package may hold other extension modules: ours export the symbol, so contain its name.
    found = [
        path
        for path in candidates
        if path.suffix in _SUFFIXES and _SYMBOLS[0].encode() in path.read_bytes()
    ]
    if len(found) == 1:
        return found[0].resolve()
    if found:
        names = ", ".join(map(str, found))
        raise LibraryNotFoundError(
            f"{name}: the package holds several libraries; load one by its path: {names}"
        )
    raise LibraryNotFoundError(
        f"{name}: the package holds no library of JAX callables ({_places(candidates)}). {BUILD}"
    )


def _places(candidates: Sequence[Path]) -> str:
    folders = dict.fromkeys(str(path.parent) for path in candidates)
    return f"searched {', '.join(folders)}" if folders else "it has no files"


def _check_symbols(handle: ctypes.CDLL, path: Path, content: bytes) -> None:
    missing = [symbol for symbol in _SYMBOLS if not hasattr(handle, symbol)]
    if not missing:
        return
    if len(missing) < len(_SYMBOLS):
        if _SYMBOLS[0] not in missing:
            check_abi(_abi(handle), str(path))
        raise MissingSymbolsError(
            f"{path}: exports a part of what a library of JAX callables exports, and not "
            f"{', '.join(missing)}. Rebuild it with a released version of the jax-callable crate "
            "(cargo update -p jax-callable)"
        )
    if b"jax_callable" in content:
        raise MissingSymbolsError(
            f"{path}: was built with jax-callable, but hides it: it does not export {missing[0]} "
            "and the other symbols jax_callable_*. Cargo exports them from a crate with "
            '`crate-type = ["cdylib"]`; where another linker command makes the library, its '
            "version script or --exclude-libs must not hide them"
        )
    is_module = hasattr(handle, f"PyInit_{path.name.partition('.')[0]}")
    kind = "a Python extension module" if is_module else "a shared library"
    raise MissingSymbolsError(
        f"{path}: is {kind}, but not of JAX callables: it does not export {missing[0]}. {BUILD}"
    )


def _read_manifest(handle: ctypes.CDLL, path: Path) -> Manifest:
    check_abi(_abi(handle), str(path))
    handle.jax_callable_manifest.restype = ctypes.c_char_p
    return parse(handle.jax_callable_manifest() or b"", str(path))


def _abi(handle: ctypes.CDLL) -> int:
    handle.jax_callable_abi_version.restype = ctypes.c_uint32
    return int(handle.jax_callable_abi_version())
