"""The `doctor` command: what is installed, what is wrong, how to mend it."""

from __future__ import annotations

import ctypes
import platform
import sys

from jax_callable import _cuda as _cuda_packages
from jax_callable._load import load, require_jax
from jax_callable._manifest import ABI_VERSION
from jax_callable._open import OpenLibrary, open_library
from jax_callable._version import __version__
from jax_callable.errors import LoadError


def run(library: str | None) -> int:
    """Prints a report.

    Args:
        library: A library to examine too, or None.

    Returns:
        0 if all is well, 1 if a problem was found.
    """
    report = _Report()
    report.line("jax-callable", f"{__version__} (ABI {ABI_VERSION})")
    report.line("Python", f"{platform.python_version()} ({sys.executable})")
    report.line("system", f"{platform.system()} {platform.machine()}")
    has_jax = _jax(report)
    _cuda(report)
    if library is not None:
        _library(report, library, has_jax=has_jax)
    print("all is well" if not report.problems else f"{len(report.problems)} to mend:")
    for problem in report.problems:
        print(f"  - {problem}")
    return 1 if report.problems else 0


class _Report:
    """Prints findings as they come and remembers the problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def line(self, label: str, text: str) -> None:
        print(f"{label:<14}{text}", flush=True)

    def problem(self, label: str, error: Exception | str) -> None:
        self.line(label, "PROBLEM, see below")
        self.problems.append(f"{label}: {error}")


def _jax(report: _Report) -> bool:
    for name in ("numpy", "jax", "jaxlib"):
        report.line(name, _cuda_packages.version(name) or "not installed")
    try:
        require_jax()
    except LoadError as error:
        report.problem("JAX", error)
        return False
    import jax  # noqa: PLC0415 - only now known to be there

    try:
        devices = jax.devices()
    except RuntimeError as error:  # a broken plugin or driver
        report.problem("devices", error)
    else:
        kinds = ", ".join(dict.fromkeys(device.device_kind for device in devices))
        report.line("devices", f"{len(devices)} on {jax.default_backend()}: {kinds}")
    return True


def _cuda(report: _Report) -> None:
    plugins = [f"{name} {version}" for name, version in _cuda_packages.plugins().items()]
    report.line("CUDA plugin", ", ".join(plugins) or "none (CPU only)")
    if mismatch := _cuda_packages.mismatch():
        report.problem("CUDA plugin", mismatch)
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        if plugins:
            report.problem(
                "CUDA driver",
                f"{plugins[0]} is installed, but libcuda.so.1 cannot be opened; "
                "install the NVIDIA driver, or expose it to this container",
            )
        else:
            report.line("CUDA driver", "none")
    else:
        report.line("CUDA driver", "libcuda.so.1")
    if plugins:
        report.line(
            "NVRTC", ", ".join(_cuda_packages.open_library("nvrtc")) or "not in JAX's packages"
        )


def _library(report: _Report, library: str, *, has_jax: bool) -> None:
    try:
        opened = open_library(library)
        report.line("library", f"{opened.path} (jax-callable {opened.manifest.version})")
        report.line("targets", f"{len(opened.manifest.targets)}: {_by_platform(opened)}")
        if has_jax:
            _registered(report, library)
    except LoadError as error:
        report.problem("library", error)


def _registered(report: _Report, library: str) -> None:
    from jax_callable import _primitive  # noqa: PLC0415 - needs JAX

    names = [callable._xla_name for callable in load(library) if "cpu" in callable.target.platforms]
    refused = [name for name in names if not _primitive.registered_on_cpu(name)]
    if refused:
        report.problem("registered", f"XLA did not take {', '.join(refused)} on the CPU")
    else:
        report.line("registered", f"{len(names)} with XLA on the CPU")


def _by_platform(opened: OpenLibrary) -> str:
    counts: dict[str, int] = {}
    for target in opened.manifest.targets:
        for name in target.platforms:
            counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} for {name}" for name, count in counts.items())
