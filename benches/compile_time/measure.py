"""Compiles the crates in turn and makes the table."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compile_time.crates import NUMPY, PYO3, Crate, crates
from compile_time.signatures import COUNT

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target" / "compile_time"
ROUNDS = 5


@dataclass(frozen=True)
class Seconds:
    """Time of a command: on the clock, and of all its processes on the CPU."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Step:
    """A timed command. `prepare` makes something to do, another in each round."""

    label: str
    arguments: tuple[str, ...]
    prepare: Callable[[Crate, int], None]


def _directory(crate: Crate) -> Path:
    return TARGET / crate.name


def _cargo(crate: Crate, *arguments: str) -> Seconds:
    directory = _directory(crate)
    # What the environment says of flags or folders is for the repository's own crates.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("CARGO_", "RUST"))}
    environment |= {"CARGO_TARGET_DIR": str(directory / "target"), "PYO3_PYTHON": sys.executable}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        ["cargo", "--quiet", *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or done.stderr:
        raise RuntimeError(f"cargo {' '.join(arguments)} in {directory}:\n{done.stderr}")
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Seconds(wall, cpu)


def _clean(profile: str) -> Callable[[Crate, int], None]:
    def clean(crate: Crate, _: int) -> None:
        _cargo(crate, "clean", "--package", crate.name, "--profile", profile)

    return clean


def _edit(crate: Crate, number: int) -> None:
    crate.write_source(_directory(crate), stamp=number)


def _lengthen(crate: Crate, number: int) -> None:
    """What follows moves in the file."""
    crate.write_source(_directory(crate), lines=number)


STEPS = (
    Step("cargo check, clean", ("check",), _clean("dev")),
    Step("cargo check, a number changed", ("check",), _edit),
    Step("cargo check, a line added", ("check",), _lengthen),
    Step("cargo build, clean", ("build",), _clean("dev")),
    Step("cargo build, a number changed", ("build",), _edit),
    Step("cargo build, a line added", ("build",), _lengthen),
    Step("cargo build --release, clean", ("build", "--release"), _clean("release")),
)


def run() -> str:
    """Measures everything and returns the tables in Markdown."""
    all_crates = crates(ROOT)
    for crate in all_crates:
        crate.write(_directory(crate))
        for step in STEPS:
            _cargo(crate, *step.arguments)
    times: dict[tuple[str, str], list[Seconds]] = {}
    for number in range(ROUNDS):
        # In turn, each beginning as often as the others.
        order = all_crates[number % len(all_crates) :] + all_crates[: number % len(all_crates)]
        for step in STEPS:
            for crate in order:
                step.prepare(crate, 1 + number)
                seconds = _cargo(crate, *step.arguments)
                times.setdefault((step.label, crate.name), []).append(seconds)

    rows: list[tuple[str, Callable[[float], str], list[float]]] = []
    for step in STEPS:
        taken = [times[step.label, crate.name] for crate in all_crates]
        cpu = [statistics.median(s.cpu for s in samples) for samples in taken]
        wall = [statistics.median(s.wall for s in samples) for samples in taken]
        rows += [
            (f"{step.label}: CPU", lambda value: f"{value:.2f} s", cpu),
            (f"{step.label}: wall", lambda value: f"{value:.2f} s", wall),
        ]
    kib = [_library(crate).stat().st_size / 1024 for crate in all_crates]
    rows.append(("cdylib, release, stripped", lambda value: f"{value:.0f} KiB", kib))
    for profile, arguments in (("dev", ()), ("release", ("--release",))):
        lines = [float(_llvm_lines(crate, arguments)) for crate in all_crates]
        rows.append((f"lines of LLVM IR, {profile}", lambda value: f"{value:.0f}", lines))
    return _report(all_crates, rows)


def _library(crate: Crate) -> Path:
    return _directory(crate) / "target" / "release" / f"lib{crate.name}.so"


def _llvm_lines(crate: Crate, profile: tuple[str, ...]) -> int:
    """Lines of functions that rustc gives to LLVM, as cargo-llvm-lines counts them."""
    _clean("release" if profile else "dev")(crate, 0)
    flags = ("--emit=llvm-ir", "-Cno-prepopulate-passes", "-Ccodegen-units=1")
    _cargo(crate, "rustc", *profile, "--", *flags)
    folder = _directory(crate) / "target" / ("release" if profile else "debug") / "deps"
    newest = max(folder.glob(f"{crate.name}*.ll"), key=lambda path: path.stat().st_mtime)
    count, is_inside = 0, False
    for line in newest.read_text().splitlines():
        if line.startswith("define "):
            is_inside = True
        elif line == "}":
            is_inside = False
        count += is_inside
    return count


def _report(
    all_crates: list[Crate], rows: list[tuple[str, Callable[[float], str], list[float]]]
) -> str:
    rustc = subprocess.run(
        ["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()[1]
    ours, *others = all_crates
    heads = [ours.label, *(f"{other.label} | ratio" for other in others)]
    lines = [
        "# Compile time and size",
        "",
        f"{COUNT} functions in one crate, with the same signatures and bodies. Medians of {ROUNDS} "
        "rounds in which the crates take turns; dependencies were built before. "
        f"rustc {rustc}, PyO3 {PYO3}, rust-numpy {NUMPY}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores.",
        "",
        f"| | {' | '.join(heads)} |",
        "|---" * (2 + 2 * len(others)) + "|",
    ]
    for label, text, (own, *rest) in rows:
        cells = [text(own), *(f"{text(value)} | {own / value:.2f}" for value in rest)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
