"""README.md: its Rust is compiled code, its Python runs, and its output is what is printed."""

import itertools
import os
import re
import subprocess
import sys

import pytest
from documents import ROOT, blocks, check_programs, read

README = read("README.md")
BLOCKS = blocks("README.md")


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
    pieces = [text for kind, text in BLOCKS if kind == "rust"]
    assert len(pieces) == 2
    for block in pieces:
        assert block in source


def test_python_blocks_print_what_is_shown(library):
    programs = [text for kind, text in BLOCKS if kind == "python"]
    shown = texts_after("python")
    assert len(programs) == len(shown) == 2
    check_programs(zip(programs, shown, strict=True), library)


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
