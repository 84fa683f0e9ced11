"""Loading a library into JAX: registration of its targets with XLA."""

from __future__ import annotations

import os
import sys
import threading
import warnings

from jax_callable import _cuda, _graphs, _preload
from jax_callable._library import Library
from jax_callable._manifest import Absent, Handler, Target
from jax_callable._open import EXECUTE, INITIALIZE, INSTANTIATE, OpenLibrary, open_library
from jax_callable._version import __version__
from jax_callable.errors import JaxVersionError, RegistrationError

OLDEST_JAX = (0, 6, 0)
"""The oldest supported release of JAX."""

_STAGES = {"instantiate": INSTANTIATE, "initialize": INITIALIZE, "execute": EXECUTE}

_lock = threading.Lock()
_loaded: dict[str, Library] = {}
# XLA forgets no name, not even where this package is imported anew. For each, the handles of the
# libraries that share it, in the order they came.
_generations: dict[str, list[int]] = vars(sys).setdefault("_jax_callable_generations", {})


def load(path_or_name: str | os.PathLike[str]) -> Library:
    """Loads a library of Rust functions, so that JAX can call them.

    The same content gives the same object. A rebuilt library can be loaded beside the old one: both
    keep working. No JAX backend is initialised, and a library is never unloaded.

    Args:
        path_or_name: The path of a cdylib, or the name of an importable package that holds one.

    Returns:
        The library, with a callable for each target.

    Raises:
        LoadError: One of the classes of `jax_callable.errors`; the message says what to do.

    Warns:
        RuntimeWarning: The library has functions for CUDA, and JAX's CUDA plugin is not of the
            version of jaxlib.
    """
    require_jax()
    from jax_callable import _vjp  # noqa: PLC0415 - the package imports without JAX
    from jax_callable._callable import Callable  # noqa: PLC0415

    opened = open_library(path_or_name)
    with _lock:
        if opened.digest not in _loaded:
            _warn_of_plugin(opened)
            for name in opened.manifest.cuda_libraries:
                _cuda.open_library(name)
            _graphs.apply_default(opened)
            callables = [
                Callable(
                    target,
                    _register(opened, target),
                    str(opened.path),
                    _preload.of(opened, target),
                    _graphs.of(opened, target),
                )
                for target in opened.manifest.targets
            ]
            _vjp.link(callables)
            _loaded[opened.digest] = Library(opened, callables)
        return _loaded[opened.digest]


def _warn_of_plugin(opened: OpenLibrary) -> None:
    has_cuda = any("CUDA" in target.platforms for target in opened.manifest.targets)
    problem = _cuda.mismatch() if has_cuda else None
    if problem:
        # At the call of `load`. No error: the functions for the CPU work.
        warnings.warn(f"{opened.path}: {problem}", RuntimeWarning, stacklevel=3)


def require_jax() -> None:
    """Checks that a supported JAX can be imported.

    Raises:
        JaxVersionError: It is missing, broken or too old.
    """
    oldest = ".".join(map(str, OLDEST_JAX))
    try:
        import jax  # noqa: PLC0415 - the package imports without JAX
    except (ImportError, RuntimeError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "jax":
            raise JaxVersionError(
                f"JAX is not installed. Install it: pip install 'jax>={oldest}' (for NVIDIA GPUs: "
                "pip install 'jax[cuda13]')"
            ) from error
        # Such as a jaxlib that is missing, or too old or too new for this jax. The second time in a
        # process, that is an AttributeError.
        raise JaxVersionError(
            f"JAX cannot be imported: {str(error).rstrip('.')}. Install what belongs together: "
            "pip install -U jax jaxlib (for NVIDIA GPUs: pip install -U 'jax[cuda13]')"
        ) from error
    if jax.__version_info__ < OLDEST_JAX:
        raise JaxVersionError(
            f"JAX {jax.__version__} is too old: jax-callable needs {oldest} or newer. Upgrade it: "
            "pip install -U jax"
        )
    try:
        from jax_callable import _primitive  # noqa: F401, PLC0415 - the part that knows JAX's inside
    except (ImportError, AttributeError) as error:
        raise JaxVersionError(
            f"jax-callable {__version__} does not know JAX {jax.__version__} ({error}). "
            "Upgrade it: pip install -U jax-callable"
        ) from error


def _register(opened: OpenLibrary, target: Target) -> str:
    """Registers a target on every platform, and returns its XLA name.

    Where it has no Rust function, the library's own handler says so better than XLA would.
    """
    import jax.ffi  # noqa: PLC0415 - see require_jax

    generations = _generations.setdefault(target.target, [])
    handle = opened.handle._handle
    if handle not in generations:
        generations.append(handle)
    number = generations.index(handle) + 1
    name = target.target if number == 1 else f"{target.target}.g{number}"
    for handler in (*target.handlers, *([target.absent] if target.absent else ())):
        stages = {
            stage: jax.ffi.pycapsule(address)
            for stage, address in _stages(opened, target, handler).items()
        }
        # Until the platform's backend starts, JAX only queues this; `doctor` checks the outcome.
        try:
            jax.ffi.register_ffi_target(name, stages, platform=handler.platform)
        except Exception as error:
            raise RegistrationError(
                f"{opened.path}: XLA refused {name} on {handler.platform}: {error}"
            ) from error
    # Calls that may be cut into shards say so, each for itself.
    jax.ffi.register_ffi_target_as_batch_partitionable(name)
    return name


def _stages(opened: OpenLibrary, target: Target, handler: Handler | Absent) -> dict[str, int]:
    stages = {}
    for stage, number in _STAGES.items():
        address = opened.handler(handler.index, number)
        if address is not None:
            stages[stage] = address
    if "execute" not in stages:
        raise RegistrationError(
            f"{opened.path}: {target.path} has no code for {handler.platform}; rebuild the library "
            "with a released jax-callable crate"
        )
    return stages
