"""Finding libraries of CUDA in the packages beside JAX."""

import ctypes
import sys

import pytest

from jax_callable import _cuda


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A place for packages, which is all that there is, and what is opened from it."""
    opened = []
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode: opened.append((path, mode)))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    _cuda.open_library.cache_clear()
    yield tmp_path, opened
    _cuda.open_library.cache_clear()


def plugin(folder, name="jax_cuda12_plugin"):
    metadata = folder / f"{name}-0.10.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.10.0\n")


def libraries(folder, *files):
    for file in files:
        path = folder / "nvidia" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_nvrtc_of_each_version_is_opened_by_its_path_for_all(packages):
    folder, opened = packages
    plugin(folder)
    libraries(folder, "cuda_nvrtc/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13")
    libraries(
        folder, "cuda_nvrtc/lib/libnvrtc.alt.so.12", "cuda_nvrtc/lib/libnvrtc-builtins.so.12.9"
    )
    files = ["cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"]
    paths = tuple(str(folder / "nvidia" / file) for file in files)
    assert _cuda.open_library("nvrtc") == paths
    assert opened == [(path, ctypes.RTLD_GLOBAL) for path in paths]
    _cuda.open_library("nvrtc")
    assert len(opened) == 2  # once


def test_libraries_are_told_apart(packages):
    folder, opened = packages
    plugin(folder)
    libraries(folder, "cublas/lib/libcublas.so.12", "cublas/lib/libcublasLt.so.12")
    assert _cuda.open_library("nvrtc") == ()
    assert _cuda.open_library("cublas") == (str(folder / "nvidia/cublas/lib/libcublas.so.12"),)
    assert _cuda.open_library("cublasLt") == (str(folder / "nvidia/cublas/lib/libcublasLt.so.12"),)
    assert len(opened) == 2


def test_nothing_is_opened_without_a_plugin(packages):
    folder, opened = packages
    libraries(folder, "cuda_nvrtc/lib/libnvrtc.so.12")
    assert _cuda.open_library("nvrtc") == ()
    assert opened == []


def test_a_plugin_without_the_packages_is_fine(packages):
    folder, opened = packages
    plugin(folder)
    assert _cuda.plugins() == {"jax-cuda12-plugin": "0.10.0"}
    assert _cuda.open_library("nvrtc") == ()
    assert opened == []


def test_what_cannot_be_opened_is_passed_over(packages, monkeypatch):
    folder, _ = packages
    plugin(folder)
    libraries(folder, "cuda_nvrtc/lib/libnvrtc.so.12")

    def refuse(path, mode):
        raise OSError(path, mode)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert _cuda.open_library("nvrtc") == ()
