"""Memory: what many programs with calls leave behind when they are dropped.

The short form makes 40 programs. `LEAKS_LONG=1000` makes so many, compares their memory with that
of programs without calls, and runs programs under LeakSanitizer, if the C compiler brings it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).with_name("programs.py")
LONG = int(os.environ.get("LEAKS_LONG", "0"))
only_long = pytest.mark.skipif(not LONG, reason="long; LEAKS_LONG=1000 runs it")


@pytest.fixture
def run(library):
    """Runs `programs.py`: what it printed, and its standard error."""

    def run(count, kind, **environment):
        process = subprocess.run(
            [sys.executable, PROGRAMS, library, str(count), kind],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=3600,
        )
        assert process.returncode == 0, process.stderr[-2000:]
        return json.loads(process.stdout.splitlines()[-1]), process.stderr

    return run


def growth(report):
    """By how many bytes the process grew in the last half."""
    return report["sizes"][-1] - report["sizes"][4]


def test_programs_that_are_dropped_leave_nothing(run):
    count = LONG or 40
    report, _ = run(count, "ours")
    # Four call sites for each program; a tenth of them is there at once.
    assert report["most"] == 4 * count // 10
    assert report["left"] == 0
    assert report["states"] == [count, count]
    # Each program holds three times 64 KiB: a state, a string, and a state made of that.
    assert growth(report) < 64 * 1024 * count / 2, report
    print("ours:", report)
    if LONG:
        twin, _ = run(count, "twin")
        print("twin:", twin)
        assert growth(report) - growth(twin) < 4096 * count / 2


def leaks(text):
    """How many leaks LeakSanitizer reports, and those with a frame of the library."""
    found = [each for each in text.split("\n\n") if " leak of " in each]
    return len(found), [each for each in found if "libfixture.so+0x" in each]


@only_long
def test_leak_sanitizer_finds_none_of_ours(run):
    path = "liblsan.so"
    if shutil.which("cc"):
        asked = ["cc", "-print-file-name=liblsan.so"]
        path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(path):
        pytest.skip("the C compiler brings no LeakSanitizer")
    options = "exitcode=0:fast_unwind_on_malloc=0:malloc_context_size=40:symbolize=0"
    environment = {"LD_PRELOAD": path, "LSAN_OPTIONS": options, "PYTHONMALLOC": "malloc"}
    report, text = run(LONG, "ours", **environment)
    everything, ours = leaks(text)
    print(f"{LONG} programs: {everything} leaks, {len(ours)} of ours")
    assert report["states"] == [LONG, LONG]
    assert not ours, ours[0]
    # It would see one.
    _, text = run(10, "leak", **environment)
    (found,) = leaks(text)[1]
    assert "leak of 1000 byte(s) in 1 object(s)" in found
