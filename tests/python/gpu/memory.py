"""What this process has of memory."""

import os
import pathlib
import subprocess

QUERY = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]


def host_bytes():
    """What it has of the host's memory."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def device_bytes():
    """What it has of the GPU's memory, by the driver; None if that does not tell."""
    lines = subprocess.run(QUERY, capture_output=True, text=True, check=True).stdout.splitlines()
    used = [line.split(", ")[1] for line in lines if line.startswith(f"{os.getpid()},")]
    return int(used[0]) << 20 if used and used[0].isdecimal() else None
