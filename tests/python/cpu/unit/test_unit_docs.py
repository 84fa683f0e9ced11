"""The pages under docs: the tests and files that they name are there, and their tables complete."""

import ast
import itertools
import re

import pytest
from documents import ROOT, read

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
# `file.py::test`, `file.rs::test`, and files that are tests as a whole: `ui/fail/file.rs`, and
# those against the stand-in driver.
NAMED = re.compile(r"`([\w/]+\.(?:py|rs))(?:::(\w+))?`")
# A name without a folder is one of the tests on the CPU.
FOLDERS = [ROOT / folder for folder in ("tests/python/cpu", "tests/python", "tests", "")]


def defined(path):
    """The names of a file's tests."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        return set(re.findall(r"#\[test\]\s*(?:#\[[^\n]*\]\s*)*fn (\w+)", text))
    return {
        each.name
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    }


def mistakes(text):
    """What a text names that is not there, or not as a test is named."""
    for file, test in NAMED.findall(text):
        path = next((found for each in FOLDERS if (found := each / file).is_file()), None)
        is_whole = path is not None and {"ui", "standin"} & set(path.parts)
        if path is None or (test not in defined(path) if test else not is_whole):
            yield f"{file}::{test}"
    yield from re.findall(r"\w*test_\w+|\S*\.rs\b", NAMED.sub("", text))


@pytest.mark.parametrize("page", PAGES)
def test_all_that_is_named_is_there(page):
    assert not list(mistakes(read(page)))


def test_right_names_are_no_mistakes():
    for name in (
        "test_dims.py::test_matmul",
        "gpu/test_errors.py::test_panics_and_own_errors",
        "unit/test_unit_docs.py::test_right_names_are_no_mistakes",
        "runtime/src/f8.rs::they_compare_and_print_as_numbers",
        "ui/fail/no_output.rs",
    ):
        assert not list(mistakes(f"as in `{name}`.")), name


@pytest.mark.parametrize(
    "text",
    [
        "`test_dims.py::test_matmult`",
        "`test_dims.py::zeros`",
        "`test_dims.py`",
        "`test_dim.py::test_matmul`",
        "`gpu/test_dims.py::test_matmul`",
        "`gpu/test_errors.py::test_codes`",
        "`unit/test_unit_dims.py::test_matmul`",
        "`runtime/src/f8.rs::ends`",
        "`runtime/src/f8.rs`",
        "`ui/fail/no_outputs.rs`",
        "`test_dims.py:test_matmul`",
        "test_dims.py::test_matmul",
        "`test_dims.py::test_matmul[2-3-4]`",
        "`ui/fail/no_output.rs",
    ],
)
def test_wrong_names_are_mistakes(text):
    assert list(mistakes(f"| a | {text} | b |"))


def rows(page):
    """The cells of a page's tables, but for headings and rules."""
    lines = [line for line in read(page).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = [i for i, row in enumerate(cells) if set(row[0]) == {"-"}]
    assert rules
    return [row for i, row in enumerate(cells) if i not in rules and i + 1 not in rules]


def test_the_comparison_has_every_row():
    found = rows("docs/parity.md")
    numbers = [row[0] for row in found if re.fullmatch(r"W?\d+", row[0])]
    assert numbers == [*map(str, range(1, 206)), *(f"W{n}" for n in range(1, 43))]
    for row in found:
        assert all(row), row
        # A row without a test says why.
        assert NAMED.search(row[-1]) or (row[-1].startswith("none ") and len(row[-2]) > 30), row


def test_each_feature_has_a_test():
    for name, what, shown in rows("docs/jax.md"):
        is_heading = name.startswith("**")
        assert bool(what) != is_heading, name
        assert bool(NAMED.search(shown)) != is_heading, name


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    def anchors(text):
        titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}

    text = read(page)
    for file, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text):
        if "://" in file:
            continue
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), file
        assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), anchor


def test_tables_are_even():
    for page in PAGES:
        for before, line in itertools.pairwise(read(page).splitlines()):
            if before.startswith("|") and line.startswith("|"):
                assert before.count("|") == line.count("|"), line
