"""Files that cannot be loaded, each a real one: what `load` and `doctor` say, in the same words."""

import _ctypes
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys

import jax
import numpy as np
import pytest

import jax_callable
from jax_callable import errors
from jax_callable.__main__ import main

BUILD = 'crate-type = ["cdylib"]'


@pytest.fixture
def refused(capsys):
    """Checks that a file is refused with an error of a class; the text, in which words are."""

    def check(path, kind, *words):
        with pytest.raises(errors.LoadError) as caught:
            jax_callable.load(path)
        text = str(caught.value)
        assert type(caught.value) is kind, text
        assert text.startswith(f"{path}: ")
        for word in words:
            assert word in text, text
        capsys.readouterr()
        assert main(["doctor", str(path)]) == 1
        assert f"  - library: {text}\n" in capsys.readouterr().out
        return text

    return check


@pytest.fixture
def run():
    """Runs a tool that comes with the linker."""

    def run(tool, *arguments):
        if not shutil.which(tool):
            pytest.skip(f"there is no {tool} here")
        subprocess.run([tool, *map(str, arguments)], check=True)

    return run


@pytest.fixture
def compiled(run, tmp_path):
    """A library, or something else, from C."""

    def compile(text, *options, name="libops.so"):
        source, path = tmp_path / "source.c", tmp_path / name
        source.write_text(text)
        run("cc", "-shared", "-fPIC", "-o", path, source, *options)
        return path

    return compile


def changed(library, tmp_path, change):
    """A copy of a library in which `change` has changed the bytes."""
    content = bytearray(library.read_bytes())
    change(content)
    path = tmp_path / library.name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"#!/bin/sh\nexec cargo run\n", "it is a text that begins with '#!/bin/sh'"),
        (b"version https://git-lfs.github.com/spec/v1\r\n", "begins with 'version https://git-lfs"),
        (b"PK\x03\x04" + bytes(30), "it begins with the bytes 50 4b 03 04 00 00 00 00"),
    ],
    ids=["empty", "script", "git-lfs", "zip"],
)
def test_no_library_at_all(tmp_path, refused, content, words):
    path = tmp_path / "libops.so"
    path.write_bytes(content)
    refused(path, errors.NotALibraryError, "is not a shared library: ", words, BUILD)


def test_a_folder(tmp_path, refused):
    refused(tmp_path, errors.LibraryNotFoundError, "is a directory; name the library in it")
    (tmp_path / "Cargo.toml").touch()
    release = tmp_path / "target" / "release"
    words = f"build it (cargo build --release), and name {release / 'lib<crate_name>.so'}"
    refused(tmp_path, errors.LibraryNotFoundError, words)
    release.mkdir(parents=True)
    (release / "libmy_ops.so").touch()
    refused(tmp_path, errors.LibraryNotFoundError, f"the library in it: {release}/libmy_ops.so")


def test_a_name_that_is_nearly_right(tmp_path, refused):
    (tmp_path / "libmy_ops.so").touch()
    words = f"no such file. Did you mean {tmp_path / 'libmy_ops.so'}?"
    refused(tmp_path / "libmy-ops.so", errors.LibraryNotFoundError, words, "cargo build --release")


def test_a_python_extension_module(refused):
    path = pathlib.Path(_ctypes.__file__)
    words = "is a Python extension module, but not of JAX callables", "jax_callable_abi_version"
    refused(path.resolve(), errors.MissingSymbolsError, *words, BUILD)


def test_a_library_of_something_else(compiled, refused):
    path = compiled("int add(int x) { return x + 1; }")
    words = "is a shared library, but not of JAX callables", "jax_callable_abi_version"
    refused(path, errors.MissingSymbolsError, *words, BUILD)


@pytest.mark.parametrize("kind", ["-pie", "-no-pie"])
def test_an_executable(run, tmp_path, refused, kind):
    source, path = tmp_path / "main.c", tmp_path / "main"
    source.write_text("int main(void) { return 0; }")
    run("cc", kind, "-fPIC", "-o", path, source)
    refused(path, errors.NotALibraryError, "is an executable, not a shared library", BUILD)


def test_an_object_file(run, tmp_path, refused):
    source, path = tmp_path / "one.c", tmp_path / "one.o"
    source.write_text("int one;")
    run("cc", "-c", "-o", path, source)
    refused(path, errors.NotALibraryError, "is an object file (.o), not a shared library", BUILD)


def test_libraries_of_other_crate_types(library, run, tmp_path, refused):
    words = "is a Rust library (.rlib) to be linked into others, not a shared library"
    refused(library.with_suffix(".rlib"), errors.NotALibraryError, words, BUILD)
    source, path = tmp_path / "one.o", tmp_path / "libops.a"
    source.touch()
    run("ar", "rc", path, source)
    words = "is an archive (.a) to be linked into others, not a shared library"
    refused(path, errors.NotALibraryError, words, BUILD)


@pytest.mark.skipif(sys.platform != "linux", reason="for ELF")
@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (18, 183 if platform.machine() != "aarch64" else 62, ", 64-bit, and this Python for"),
        (18, 243, "is built for RISC-V, 64-bit, and"),
        (18, 1000, "is built for machine 1000 of ELF, 64-bit, and"),
        (4, 1, ", 32-bit, and this Python for"),
    ],
    ids=["aarch64", "RISC-V", "unknown", "32-bit"],
)
def test_another_machine(sibling, tmp_path, refused, at, value, words):
    def change(content):
        content[at : at + (2 if at == 18 else 1)] = value.to_bytes(2 if at == 18 else 1, "little")

    path = changed(sibling("fixture_impostor"), tmp_path, change)
    here = f"this Python for {platform.machine()}, 64-bit"
    target = f"cargo build --release --target {platform.machine()}-unknown-linux-gnu"
    refused(path, errors.NotALibraryError, words, here, target)


@pytest.mark.skipif(sys.platform != "linux", reason="for ELF")
def test_a_library_for_macos(tmp_path, refused):
    path = tmp_path / "libops.dylib"
    path.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(100))
    refused(path, errors.NotALibraryError, "is built for macOS, and this Python for")


def test_cut_at_a_hundred_lengths(sibling, python, tmp_path):
    code = """if True:
        import pathlib, sys
        from jax_callable._open import open_library
        from jax_callable.errors import LoadError
        content = pathlib.Path(sys.argv[1]).read_bytes()
        said = []
        for i in [*range(64), *range(64, len(content), len(content) // 36)]:
            path = pathlib.Path(sys.argv[2], f"lib{i}.so")
            path.write_bytes(content[:i])
            try:
                open_library(path)
            except LoadError as error:
                said.append((i, str(error)))
            path.unlink()
        cut = [i for i, text in said if "is truncated: its build or copy did not finish." in text]
        # Whole but for what is not loaded, such as debug information.
        whole = [i for i, text in said if "has ABI version 7" in text]
        early = [i for i, text in said if "is not a shared library: it " in text]
        print(early == [0, 1, 2, 3], len(cut), len(whole), len(said) - len(early + cut + whole))
    """
    # In another process, which would die of a bus error.
    result = python(code, sibling("fixture_impostor"), tmp_path, IMPOSTOR_ABI="7")
    early, cut, whole, other = result.split()
    assert (early, other) == ("True", "0")
    assert int(cut) > 60
    assert int(whole) > 3


def test_a_missing_dependency(compiled, tmp_path, refused):
    compiled("int gone(void) { return 1; }", name="libgone.so")
    text = "int gone(void); int ops(void) { return gone(); }"
    path = compiled(text, "-L", tmp_path, "-lgone")
    (tmp_path / "libgone.so").unlink()
    words = "this machine cannot open the library: it needs libgone.so, which is not where", "LD_LI"
    refused(path, errors.NotALibraryError, *words)


def test_an_undefined_symbol(compiled, refused):
    path = compiled("int gone(void); int ops(void) { return gone(); }")
    words = "it uses gone, which no library that it was linked with defines", "rustc-link-lib"
    refused(path, errors.NotALibraryError, *words)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc")
def test_a_newer_system(sibling, tmp_path, refused):
    def change(content):
        at = content.index(b"\0GLIBC_2.") + 7
        content[at : at + 2] = b"9."

    path = changed(sibling("fixture_impostor"), tmp_path, change)
    here = os.confstr("CS_GNU_LIBC_VERSION")
    words = "it was built on a newer system, with glibc 9.", f"and this one has {here}"
    refused(path, errors.NotALibraryError, *words, "the oldest system")


def test_a_stripped_library_works(library, run, tmp_path):
    path = tmp_path / library.name
    run("strip", "--strip-all", "-o", path, library)
    assert path.stat().st_size < library.stat().st_size / 2
    ops = jax_callable.load(path)
    assert ops._opened.path == path
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(ops.cumsum)(x), np.cumsum(x))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"fixture\.panics: panicked: plain words"):
        ops.panics("str", x).block_until_ready()


HIDDEN = "was built with jax-callable, but hides it: it does not export jax_callable_abi_version"


@pytest.mark.skipif(sys.platform != "linux", reason="for ELF")
def test_without_its_dynamic_symbols(library, tmp_path, refused):
    def change(content):
        """Makes every definition of ours one that the library needs from others, if it can."""
        (sections,) = struct.unpack_from("<Q", content, 40)
        size, count = struct.unpack_from("<HH", content, 58)
        headers = [
            struct.unpack_from("<IIQQQQIIQQ", content, sections + i * size) for i in range(count)
        ]
        dynamic = next(header for header in headers if header[1] == 11)
        strings, found = headers[dynamic[6]][4], 0
        for at in range(dynamic[4], dynamic[4] + dynamic[5], 24):
            (name,) = struct.unpack_from("<I", content, at)
            if content.startswith(b"jax_callable_", strings + name):
                struct.pack_into("<BBHQQ", content, at + 4, 0x22, 0, 0, 0, 0)
                found += 1
        assert found == 8

    path = changed(library, tmp_path, change)
    refused(path, errors.MissingSymbolsError, HIDDEN, "--exclude-libs")


def test_hidden_by_a_version_script(compiled, tmp_path, refused):
    script = tmp_path / "local.map"
    script.write_text("{ local: *; };")
    text = "int jax_callable_abi_version(void) { return 1; }"
    path = compiled(text, f"-Wl,--version-script={script}")
    refused(path, errors.MissingSymbolsError, HIDDEN, "version script")


def test_a_part_of_the_symbols(compiled, refused):
    path = compiled("int jax_callable_abi_version(void) { return 1; }")
    words = "and not jax_callable_manifest, jax_callable_handler", "cargo update -p jax-callable"
    refused(path, errors.MissingSymbolsError, "exports a part of what", *words)


@pytest.mark.parametrize(
    ("abi", "remedy"), [(0, "cargo update -p jax-callable"), (2, "pip install -U jax-callable")]
)
def test_another_version_with_other_symbols(compiled, refused, abi, remedy):
    path = compiled(f"int jax_callable_abi_version(void) {{ return {abi}; }}", name=f"lib{abi}.so")
    ours = f"this Python package (jax-callable {jax_callable.__version__}) reads version 1"
    refused(path, errors.AbiVersionError, f"has ABI version {abi}, {ours}", remedy)
