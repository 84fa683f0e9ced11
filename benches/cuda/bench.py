"""Benchmarks on a GPU: calls with four small kernels in each graph mode, beside C++ through ffi.h
and NVIDIA Warp; and what one launch of a kernel costs.

Everything takes turns in rounds of one process, so that what else the machine does hits all alike.
"""

from __future__ import annotations

import os

# Calls that XLA may capture, it does. Before JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_graph_min_graph_size=1")

import argparse
import dataclasses
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from handler_times import HandlerTimes
from sides import NAMES, SCALE, Absent, Side, Sides

LIBRARY = "JAX_CALLABLE_BENCH_OPS_CUDA"
ELEMENTS = 10_000
REPS = (1, 4, 16)
ROUNDS = 20
CALLS = 40
WARM_UP = 4
FAILED = "FAILED"

Arrays = tuple[jax.Array, ...]


@dataclasses.dataclass
class Round:
    """Of one side in one round: microseconds, and how often the body was called for."""

    call: float
    handler: float
    executions: float


def middle(values: Iterable[float]) -> float:
    """The mean of the middle half."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut]) if ordered else 0.0


def spread(values: Iterable[float], digits: int) -> str:
    """The median, and the quartiles."""
    low, median, high = np.percentile(list(values), [25, 50, 75])
    return f"{median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def time_calls(
    function: Callable[..., Any], given: list[Arrays], side: Side, times: HandlerTimes
) -> Round:
    """Calls with each of `given`, and waits for each result, which is dropped then."""
    for _ in range(WARM_UP):
        jax.block_until_ready(function(*given[0]))
    times.take(side.target)
    microseconds = []
    for arrays in given[1:]:
        start = time.perf_counter()
        jax.block_until_ready(function(*arrays))
        microseconds.append((time.perf_counter() - start) * 1e6)
    # INITIALIZE, if there is one, and EXECUTE.
    stages = times.take(side.target)
    in_handler = sum(middle(stage) * len(stage) for stage in stages.values()) / 1e3
    calls = len(microseconds)
    return Round(middle(microseconds), in_handler / calls, len(stages["execute"]) / calls)


def new_arrays() -> Arrays:
    numbers = jnp.arange(ELEMENTS, dtype=jnp.float32)
    pairs = numbers.reshape(-1, 2)
    return (numbers.copy(), pairs.copy(), numbers.copy(), pairs.copy())


def ready(side: Side, sets: list[Arrays], reps: int) -> Callable[..., Any] | Absent:
    """The jitted call of a side, tried; or why it cannot be called."""
    function = jax.jit(side.call)
    # The second set is at other addresses.
    for arrays in sets:
        try:
            c, d, e, f = jax.block_until_ready(function(*arrays))
        except Exception as error:
            text = str(error)
            return Absent(f"{side.name}: {text[:500]}", failed="UNIMPLEMENTED" not in text)
        in_place, new = arrays[2:], arrays[:2]
        for result, x in zip((c, d), in_place, strict=True):
            np.testing.assert_array_equal(result, np.asarray(x) * np.float32(SCALE) ** reps)
        for result, x in zip((e, f), new, strict=True):
            np.testing.assert_array_equal(result, np.asarray(x) * np.float32(SCALE))
    return function


def graph_modes(sides: Sides, times: HandlerTimes) -> str:
    """The tables of calls."""
    # For each side, each set is at addresses that it has not seen before.
    moving = [new_arrays() for _ in range(ROUNDS * CALLS + 1)]
    same = [moving[0]] * (CALLS + 1)
    tries = [moving[0], new_arrays()]
    order = random.Random(0)
    lines = []
    for reps in REPS:
        functions: dict[Side, Callable[..., Any]] = {}
        for side in sides.all(reps):
            tried = side if isinstance(side, Absent) else ready(side, tries, reps)
            if isinstance(tried, Absent):
                lines.append(f"{FAILED if tried.failed else 'Skipped'}: {tried.why}\n")
            else:
                functions[side] = tried
        measured: dict[tuple[str, bool], list[Round]] = {}
        bare: dict[bool, list[float]] = {}
        for number in range(ROUNDS):
            fresh = [moving[0], *moving[1 + number * CALLS : 1 + (number + 1) * CALLS]]
            # In another order each time: what runs before has its after-effects.
            turns = [(side, moves) for side in functions for moves in (False, True)]
            for side, moves in order.sample(turns, len(turns)):
                given = fresh if moves else same
                if side.is_by_hand:
                    sides.take_graph_times()
                one = time_calls(functions[side], given, side, times)
                measured.setdefault((side.name, moves), []).append(one)
                if side.is_by_hand:
                    driver = sides.take_graph_times()[WARM_UP:]
                    bare.setdefault(moves, []).append(middle(driver))
        lines += [f"## {4 * reps} kernels a call\n", *_table(measured)]
        if bare:
            lines += ["", *(_to_driver(measured, moves, bare[moves]) for moves in bare)]
        lines.append("")
    return "\n".join(lines)


def _table(measured: dict[tuple[str, bool], list[Round]]) -> list[str]:
    lines = [
        "| side, graph mode | addresses | call us | in handler us | executions a call "
        "| call, to C++ | in handler, to C++ | call, to Warp | in handler, to Warp |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, moves in sorted(measured, key=lambda key: (NAMES.index(key[0]), key[1])):
        rounds = measured[name, moves]
        cells = [
            name,
            "moving" if moves else "same",
            spread((one.call for one in rounds), 0),
            spread((one.handler for one in rounds), 1),
            f"{statistics.fmean(one.executions for one in rounds):.2f}",
        ]
        mode = name.split()[1]
        # Beside graphs of our own, one that C++ has made by hand and runs as ours are.
        cpp = mode if mode in ("None", "Jax") else "ForkedGraph"
        for other in (f"C++ {cpp}", f"Warp {mode}"):
            others = measured.get((other, moves))
            cells += _ratios(rounds, others) if others and other != name else ["", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _to_driver(
    measured: dict[tuple[str, bool], list[Round]], moves: bool, bare: list[float]
) -> str:
    """Our graphs beside what the driver itself takes for such a call."""
    rounds = measured["Rust Warp", moves]
    ratios = [one.handler / own for one, own in zip(rounds, bare, strict=True)]
    what = "a `cuGraphExecKernelNodeSetParams` for each kernel and " if moves else ""
    return (
        f"- {'moving' if moves else 'same'}: in C++ Graph, {what}`cuGraphLaunch` alone: "
        f"{spread(bare, 2)} us; Rust Warp's time in the handler to that: {spread(ratios, 2)}"
    )


def _ratios(rounds: list[Round], others: list[Round]) -> list[str]:
    """Of the calls, and of the time in the handlers where there is some, round by round."""
    pairs = list(zip(rounds, others, strict=True))
    calls = [one.call / other.call for one, other in pairs]
    handlers = [one.handler / other.handler for one, other in pairs if other.handler > 0]
    return [spread(calls, 2), spread(handlers, 2) if handlers else ""]


def launches(ops: Any) -> str:
    """The table of single launches."""
    x = jnp.arange(32, dtype=jnp.float32)
    ops.time_launches(2.0, x).block_until_ready()
    # The first run warms up.
    ops.time_launches(2.0, x).block_until_ready()
    with jax.default_device(jax.devices("cpu")[0]):
        times = np.asarray(ops.launch_times())
    names = ("`cuLaunchKernel`", "cudarc's `launch_builder`", "`cuda::module!`'s `launch`")
    lines = [
        "## One launch\n",
        f"{len(times)} rounds of 200 launches each, which take turns in one body.\n",
        "| by | ns | ratio to `cuLaunchKernel` |",
        "|---|---|---|",
    ]
    for name, own in zip(names, times.T, strict=True):
        lines.append(f"| {name} | {spread(own, 0)} | {spread(own / times[:, 0], 3)} |")
    return "\n".join(lines) + "\n"


def graph_launches(ops: Any) -> str:
    """The table of bare graph launches: what a call by a graph cannot be below."""
    x = jnp.arange(10_000, dtype=jnp.float32)
    lines = [
        "## One graph launch\n",
        "`cuGraphLaunch` by itself, on an idle stream, 400 times each.\n",
        "| kernels in the graph | us |",
        "|---|---|",
    ]
    for count in (4, 64):
        # The first run warms up.
        for _ in range(2):
            ops.time_graph_launches(count, 2.0, x).block_until_ready()
        with jax.default_device(jax.devices("cpu")[0]):
            times = np.asarray(ops.graph_launch_times())
        lines.append(f"| {count} | {spread(times / 1000, 2)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, help="a file for the tables")
    parser.add_argument("--library", default=os.environ.get(LIBRARY), help=f"or ${LIBRARY}")
    args = parser.parse_args()
    if not args.library:
        parser.error(f"--library or ${LIBRARY} must be the cdylib of benches/cuda")
    sources = Path(__file__).parent
    gpu = jax.devices("cuda")[0]
    with tempfile.TemporaryDirectory() as work:
        times = HandlerTimes("cuda", Path(work), sources / "cpp" / "timing.cc")
        sides = Sides(args.library, sources, Path(work), times)
        parts = [
            "# On a GPU\n",
            f"{gpu.device_kind}, JAX {jax.__version__}, Python {platform.python_version()}, "
            f"{os.cpu_count()} cores, XLA_FLAGS={os.environ['XLA_FLAGS']}. {ELEMENTS} float32 in "
            "each array, four of them in, two of these in-out, and two more out. A call is jitted "
            "and waited for; `in handler` is the host time that XLA waits for the handler, the "
            f"same for all. Of each round's {CALLS} calls the mean of the middle half; of {ROUNDS} "
            "rounds, in which all take turns, the median and the quartiles.\n",
            launches(sides.ops),
            graph_launches(sides.ops),
            graph_modes(sides, times),
        ]
    text = "\n".join(parts)
    sys.stdout.write(text)
    if args.out:
        args.out.write_text(text)
    if FAILED in text:
        sys.exit(1)


if __name__ == "__main__":
    main()
