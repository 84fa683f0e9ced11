"""The crates of the comparison: the same functions with each attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compile_time.signatures import Param, Signature, signatures

PYO3 = "0.30.1"
NUMPY = "0.30.0"

_MANIFEST = """\
[package]
name = "{name}"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]

[dependencies]
{dependencies}

[profile.release]
strip = true

[workspace]
"""


@dataclass(frozen=True)
class Crate:
    """A crate with all functions."""

    name: str
    label: str
    dependencies: str
    attribute: Callable[[Signature], str]
    prelude: str
    result: str
    ok: str
    ty: Callable[[Param], str]
    epilogue: Callable[[list[Signature]], str]

    def write(self, directory: Path) -> None:
        """Writes all of it."""
        manifest = _MANIFEST.format(name=self.name, dependencies=self.dependencies)
        (directory / "src").mkdir(parents=True, exist_ok=True)
        (directory / "Cargo.toml").write_text(manifest)
        self.write_source(directory)

    def write_source(self, directory: Path, stamp: int = 0, lines: int = 0) -> None:
        """Writes the source, with `stamp` and more `lines` in the body in the middle."""
        functions = signatures()
        texts = [self._function(function) for function in functions]
        middle = len(functions) // 2
        texts[middle] = self._function(functions[middle], stamp, lines)
        text = "\n".join([self.prelude, *texts, self.epilogue(functions)])
        (directory / "src" / "lib.rs").write_text(text)

    def _function(self, function: Signature, stamp: int = 0, lines: int = 0) -> str:
        params = ", ".join(f"{p.name}: {self.ty(p)}" for p in function.params)
        result = f" -> {self.result}" if function.is_fallible else ""
        # The parameters are used, so that the compiler cannot leave out how they are made.
        uses = "".join(f"    black_box(&{p.name});\n" for p in function.params)
        more = "    black_box(0_u32);\n" * lines
        ok = f"    {self.ok}\n" if function.is_fallible else ""
        name = function.name
        return (
            f"/// What `{name}` does.\n{self.attribute(function)}\nfn {name}({params}){result} {{\n"
            f"    black_box({stamp:03}_u32);\n{more}{uses}{ok}}}\n"
        )


def _jax_callable(function: Signature) -> str:
    has_in_out = any(p.role == "in_out" for p in function.params)
    return '#[jax_callable(in_out = "z")]' if has_in_out else "#[jax_callable]"


def _ours(param: Param) -> str:
    match param.role:
        case "context":
            return "&cpu::Context"
        case "scalar":
            return param.ty
        case "text":
            return "&str"
        case "in":
            return f"cpu::Array<{param.ty}, {param.rank}>"
        case _:
            return f"cpu::ArrayMut<{param.ty}, {param.rank}>"


def _pyo3(param: Param) -> str:
    match param.role:
        case "context":
            return "Python<'_>"
        case "scalar":
            return param.ty
        case "text":
            return "&str"
        case "in":
            return "&[u8]"
        case _:
            return "&Bound<'_, PyByteArray>"


def _numpy(param: Param) -> str:
    match param.role:
        case "in":
            return f"PyReadonlyArray<'_, {param.ty}, Ix{param.rank}>"
        case "in_out" | "out":
            return f"PyReadwriteArray<'_, {param.ty}, Ix{param.rank}>"
        case _:
            return _pyo3(param)


def _module(functions: list[Signature]) -> str:
    """PyO3's module, by which Python finds the functions."""
    adds = "".join(
        f"    module.add_function(wrap_pyfunction!({f.name}, module)?)?;\n" for f in functions
    )
    return (
        "#[pymodule]\n"
        f"fn functions(module: &Bound<'_, PyModule>) -> PyResult<()> {{\n{adds}    Ok(())\n}}\n"
    )


def crates(root: Path) -> list[Crate]:
    """Ours first. `root` is that of the repository."""
    black_box = "use std::hint::black_box;"
    ours = Crate(
        name="ours",
        label="jax-callable",
        dependencies=f'jax-callable = {{ path = "{root / "runtime"}" }}',
        attribute=_jax_callable,
        prelude=f"use jax_callable::prelude::*;\n{black_box}\n",
        result="Result<()>",
        ok="Ok(())",
        ty=_ours,
        epilogue=lambda _: "",
    )
    pyo3 = f'pyo3 = "={PYO3}"'
    plain = Crate(
        name="pyo3_plain",
        label="PyO3",
        dependencies=pyo3,
        attribute=lambda _: "#[pyfunction]",
        prelude=f"use pyo3::prelude::*;\nuse pyo3::types::PyByteArray;\n{black_box}\n",
        result="PyResult<()>",
        ok="Ok(())",
        ty=_pyo3,
        epilogue=_module,
    )
    numpy = Crate(
        name="pyo3_numpy",
        label="PyO3, rust-numpy",
        dependencies=f'{pyo3}\nnumpy = "={NUMPY}"',
        attribute=lambda _: "#[pyfunction]",
        prelude=(
            "use numpy::{Ix1, Ix2, Ix3, PyReadonlyArray, PyReadwriteArray};\n"
            f"use pyo3::prelude::*;\n{black_box}\n"
        ),
        result="PyResult<()>",
        ok="Ok(())",
        ty=_numpy,
        epilogue=_module,
    )
    return [ours, plain, numpy]
