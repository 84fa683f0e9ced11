"""Benchmarks: `cargo xtask bench [compile|dispatch]`. Prints a table and, with --save, keeps it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import compile_time
import dispatch

BENCHES = {"compile": compile_time.run, "dispatch": dispatch.run}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="dispatch", choices=sorted(BENCHES))
    parser.add_argument("--save", action="store_true", help="write benches/results/NAME.md")
    args = parser.parse_args()
    table = BENCHES[args.name]()
    sys.stdout.write(table)
    if args.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{args.name}.md").write_text(table)


if __name__ == "__main__":
    main()
