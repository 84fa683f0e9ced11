"""README.md: its Rust is compiled code, its Python runs, and its output is what is printed."""

import contextlib
import io
import itertools
import os
import pathlib
import re
import subprocess
import sys

import jax
import pytest

ROOT = pathlib.Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# The language and the text of each fenced block, in order.
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def library():
    """The path of the quickstart's cdylib, which `cargo xtask test` builds."""
    return os.environ["JAX_CALLABLE_QUICKSTART"]


def run(*arguments):
    program = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True
    )
    return program.stdout


def texts_after(kind):
    """The text blocks that directly follow a block of a kind."""
    pairs = itertools.pairwise(BLOCKS)
    return [text for (before, _), (after, text) in pairs if (before, after) == (kind, "text")]


def test_every_rust_block_is_code_of_the_quickstart():
    source = (ROOT / "examples/quickstart/src/lib.rs").read_text(encoding="utf-8")
    blocks = [text for kind, text in BLOCKS if kind == "rust"]
    assert len(blocks) == 2
    for block in blocks:
        assert block in source


def test_python_blocks_print_what_is_shown(library):
    blocks = [text for kind, text in BLOCKS if kind == "python"]
    shown = texts_after("python")
    assert len(blocks) == len(shown) == 2
    before = jax.config.jax_enable_x64
    namespace = {}
    try:
        for i, (block, expected) in enumerate(zip(blocks, shown, strict=True)):
            path = '"target/release/libquickstart.so"'
            assert block.count(path) == (1 if i == 0 else 0)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(block.replace(path, repr(library)), namespace)
            assert printed.getvalue() == expected
    finally:
        jax.config.update("jax_enable_x64", before)


def test_the_table_of_targets_is_what_the_command_line_prints(library):
    (shown,) = texts_after("sh")
    title, table = run("-m", "jax_callable", "list", library).split("\n", 1)
    assert title.endswith("3 targets")
    assert table == shown


def test_the_demo_prints_what_is_shown(library):
    (shown,) = texts_after("text")
    printed = run(ROOT / "examples/quickstart/demo.py", library).splitlines()
    for line in shown.splitlines():
        assert line in printed


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_to_files(target):
    assert "://" in target or (ROOT / target).exists()
