"""The cache of compiled modules on disk, across processes."""

import os
import time

import pytest

USE = "print(np.asarray(ops.sum(jnp.ones(10, jnp.float32))))"


@pytest.fixture
def use(python, tmp_path):
    """Compiles the fixture's modules, or finds them, in another process."""

    def run(folder=tmp_path / "cache"):
        assert python(USE, JAX_CALLABLE_CACHE_DIR=str(folder)).split() == ["10.0"]
        return {
            path: (path.read_bytes(), path.stat().st_ino) for path in (folder / "cuda").glob("*")
        }

    return run


def test_a_second_process_finds_what_the_first_compiled(use):
    entries = use()
    assert entries
    assert all(path.suffix == ".cubin" for path in entries)
    assert all(content.startswith(b"\x7fELF") for content, _ in entries.values())
    long_ago = time.time() - 1000
    for path in entries:
        os.utime(path, (long_ago, long_ago))
    assert use() == entries, "what was found is not written again"
    assert all(path.stat().st_mtime > long_ago + 500 for path in entries), "it is noted as used"


def test_damaged_entries_are_compiled_anew(use):
    entries = use()
    damages = [lambda content: content[: len(content) // 2], lambda content: b"?" + content[1:]]
    for damage in (*damages, lambda _: b""):
        for path, (content, _) in entries.items():
            path.write_bytes(damage(content))
        mended = use()
        assert {path: content for path, (content, _) in mended.items()} == {
            path: content for path, (content, _) in entries.items()
        }


def test_without_a_folder_to_write_to(use, tmp_path):
    file = tmp_path / "file"
    file.touch()
    assert use(file / "cache") == {}


@pytest.mark.unchecked
def test_turned_off(python, tmp_path):
    python(USE, JAX_CALLABLE_CACHE_DIR="", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert not (tmp_path / "jax-callable").exists()
    assert not (tmp_path / ".cache" / "jax-callable").exists()
    python(USE, XDG_CACHE_HOME=str(tmp_path))
    # An outer setting of the cache's own variable goes before.
    if "JAX_CALLABLE_CACHE_DIR" not in os.environ:
        assert list((tmp_path / "jax-callable" / "cuda").glob("*.cubin"))
