"""The pages under docs, and README.md: their fenced blocks."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[3]


def read(name):
    """The text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name):
    """The language and the text of each fenced block of a page, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", read(name), re.MULTILINE | re.DOTALL)
