"""Manifests and targets for tests that need no library."""

import json

from jax_callable._manifest import parse


def dim(name):
    return {"dim": name}


def axis(param, index):
    return {"axis": [param, index]}


def scalar_value(name):
    return {"scalar": name}


def op(symbol, left, right):
    return {"op": symbol, "args": [left, right]}


def scalar(name, dtype, length=None):
    return {"name": name, "role": "scalar", "dtype": dtype, "length": length}


def array(name, role="input", dtype="float32", rank=1, *, dims=None, packed=()):
    return {
        "name": name,
        "role": role,
        "dtype": dtype,
        "rank": rank,
        "packed": list(packed),
        "dims": dims,
    }


def handler(platform="cpu", index=0, file="src/lib.rs", line=12):
    return {
        "platform": platform,
        "index": index,
        "file": file,
        "line": line,
        "module": "demo::ops",
        "graph_mode": "Jax",
        "stage_in": None,
        "stage_out": None,
        "graph_cache_max": None,
        "modules": None,
        "preload": "CurrentDevice",
        "state": None,
        "scratch": [],
    }


def raw_target(name, *params, crate="demo", handlers=None, **options):
    return {
        "crate": crate,
        "name": name,
        "target": f"{crate}.{name}.0123abcd",
        "doc": "",
        "params": list(params),
        "vmap_method": "broadcast_all",
        "batch_dims": [],
        "has_side_effect": False,
        "vjp": None,
        "handlers": handlers or [handler()],
        "absent": None,
        **options,
    }


def manifest(*targets, **keys):
    return {
        "abi": 1,
        "version": "0.1.0",
        "errors": [],
        "cuda_libraries": [],
        "targets": list(targets),
        **keys,
    }


def target(name, *params, **options):
    """A parsed target."""
    text = json.dumps(manifest(raw_target(name, *params, **options)))
    return parse(text, "libdemo.so").targets[0]
