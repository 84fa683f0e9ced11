"""What cannot be loaded, and what the command line says about it. No library of ours is needed."""

import _ctypes
import pathlib
import shutil
import sys

import jax
import pytest

from jax_callable import LoadError, errors, load
from jax_callable.__main__ import main

# Some shared library that is certainly there and certainly not ours.
FOREIGN = pathlib.Path(_ctypes.__file__)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package `holder`, and its folder."""
    folder = tmp_path / "holder"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def file(tmp_path, content):
    path = tmp_path / "libops.so"
    path.write_bytes(content)
    return path


def test_missing_file(tmp_path):
    for name in (tmp_path / "libops.so", "libops.so", "./ops"):
        with pytest.raises(errors.LibraryNotFoundError, match=r"no such file.*cargo build"):
            load(name)


def test_directory(tmp_path):
    with pytest.raises(errors.LibraryNotFoundError, match="is a directory"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is not a shared library"),
        (b"#!/bin/sh\n", "is not a shared library"),
        (b"!<arch>\n", "is an archive (.a)"),
        (b"\x7fELF\x02\x01\x01" + bytes(20), "truncated"),
        (FOREIGN.read_bytes()[:3000], "truncated"),
        (FOREIGN.read_bytes()[:-3000], None),
        (b"\x7fELF\x01\x01\x01" + bytes(200), "is built for machine 0 of ELF, 32-bit"),
    ],
    ids=["empty", "script", "archive", "header", "head", "no-sections", "32-bit"],
)
def test_not_a_library(tmp_path, content, text):
    # A truncated library must be an error, not a bus error.
    with pytest.raises(LoadError) as error:
        load(file(tmp_path, content))
    if text:
        assert isinstance(error.value, errors.NotALibraryError)
        assert text in str(error.value)


def test_library_of_something_else():
    with pytest.raises(errors.MissingSymbolsError, match=r'crate-type = \["cdylib"\]'):
        load(FOREIGN)


def test_name_of_nothing():
    with pytest.raises(errors.LibraryNotFoundError, match="neither a file nor an importable"):
        load("no_such_package_anywhere")
    with pytest.raises(errors.LibraryNotFoundError, match="neither a file nor an importable"):
        load("no_such_package_anywhere.child")


def test_package_without_a_library(package):
    shutil.copy(FOREIGN, package / "other.so")
    with pytest.raises(errors.LibraryNotFoundError, match="holds no library of JAX callables"):
        load("holder")


def test_package_with_several_libraries(package):
    for name in ("liba.so", "libb.so"):
        (package / name).write_bytes(b"\x7fELF..jax_callable_abi_version")
    with pytest.raises(errors.LibraryNotFoundError, match=r"several libraries.*liba\.so.*libb\.so"):
        load("holder")


def test_library_of_a_package_is_found(package):
    (package / "libops.so").write_bytes(b"jax_callable_abi_version")
    with pytest.raises(errors.NotALibraryError, match=r"holder/libops\.so"):
        load("holder")


def test_load_errors_are_import_errors():
    for name in dir(errors):
        error = getattr(errors, name)
        if isinstance(error, type):
            assert issubclass(error, LoadError)
            assert issubclass(error, ImportError)


def test_old_jax(monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 5, 3))
    with pytest.raises(errors.JaxVersionError, match=r"needs 0\.6\.0 or newer.*pip install -U jax"):
        load(FOREIGN)


def test_missing_jax(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(errors.JaxVersionError, match=r"not installed.*pip install 'jax>=0\.6\.0'"):
        load(FOREIGN)
    assert main(["doctor"]) == 1
    assert "JAX is not installed" in capsys.readouterr().out


def test_list_says_one_line(capsys, tmp_path):
    assert main(["list", str(file(tmp_path, b"text"))]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("jax-callable: ")
    assert captured.err.count("\n") == 1


def test_doctor(capsys, tmp_path):
    assert main(["doctor"]) == 0
    report = capsys.readouterr().out
    assert jax.__version__ in report
    assert "all is well" in report
    assert main(["doctor", str(file(tmp_path, b"text"))]) == 1
    assert "library: " in capsys.readouterr().out


def test_usage():
    with pytest.raises(SystemExit) as error:
        main([])
    assert error.value.code == 2
