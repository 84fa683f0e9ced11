"""The manifest of a library: what its targets are called, take and return."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from jax_callable import _json
from jax_callable._version import __version__
from jax_callable.errors import AbiVersionError, ManifestError, NoTargetsError

ABI_VERSION = 1
"""The version of the C surface and of the manifest that this package reads."""

VMAP_METHODS = (
    "broadcast_all",
    "expand_dims",
    "sequential",
    "sequential_unrolled",
    "legacy_vectorized",
    None,
)

_PLATFORMS = ("cpu", "CUDA")
_ROLES = ("scalar", "input", "in_out", "output")
_SCRATCH = ("scratch",)
_OPERATORS = ("+", "-", "*", "/", "%", "div_ceil", "min", "max")


@dataclass(frozen=True)
class Dim:
    """A named dimension, such as `n`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Axis:
    """The size of one axis of an array input."""

    param: str
    index: int

    def __str__(self) -> str:
        return f"{self.param}.dim({self.index})"


@dataclass(frozen=True)
class ScalarValue:
    """The value of an integer static scalar."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Op:
    """Integer arithmetic on two expressions; `/` and `%` round down."""

    op: str
    left: Expr
    right: Expr

    def __str__(self) -> str:
        if self.op in ("div_ceil", "min", "max"):
            return f"{self.op}({self.left}, {self.right})"
        left = f"({self.left})" if _looser(self.left, self.op) else f"{self.left}"
        # `-`, `/` and `%` do not associate: an equally tight right side keeps its parentheses.
        tight = isinstance(self.right, Op) and self.right.op in ("+", "-", "*", "/", "%")
        right = f"({self.right})" if tight else f"{self.right}"
        return f"{left} {self.op} {right}"


Expr: TypeAlias = int | Dim | Axis | ScalarValue | Op


def _looser(expr: Expr, op: str) -> bool:
    return isinstance(expr, Op) and expr.op in ("+", "-") and op in ("*", "/", "%")


@dataclass(frozen=True)
class Param:
    """One parameter of a target.

    Attributes:
        name: The Rust name.
        role: "scalar" (static), "input", "in_out", "output" or, of a handler only, "scratch".
        dtype: A NumPy or ml_dtypes name; "str" for a static string.
        length: For scalars only: None for one value, an int for `[T; K]`, "slice" for `&[T]`.
        rank: For arrays: the number of dimensions before the packed ones.
        packed: For arrays: the trailing dimensions that vector and matrix elements add.
        dims: For arrays: one expression for each of the `rank` dimensions; None when undeclared.
    """

    name: str
    role: str
    dtype: str
    length: int | str | None = None
    rank: int = 0
    packed: tuple[int, ...] = ()
    dims: tuple[Expr, ...] | None = None

    @property
    def is_array(self) -> bool:
        """Whether JAX passes or receives an array for this parameter."""
        return self.role != "scalar"

    def __str__(self) -> str:
        """The type in short, such as `float32[n, 3]`; `:` stands for an undeclared dimension."""
        if self.is_array:
            dims = [":"] * self.rank if self.dims is None else [str(dim) for dim in self.dims]
            sizes = ", ".join([*dims, *map(str, self.packed)])
            return f"{self.dtype}[{sizes}]"
        if self.length is None:
            return self.dtype
        return f"[{self.dtype}]" if self.length == "slice" else f"[{self.dtype}; {self.length}]"


@dataclass(frozen=True)
class Handler:
    """The Rust function that serves a target on one platform.

    Attributes:
        platform: "cpu" or "CUDA".
        index: Its place in the library's handler table.
        file: Source file, as the Rust compiler saw it.
        line: Line in `file`.
        module: Rust module path.
        scratch: Its workspaces: results of the call in HLO that JAX does not see.
        options: The platform's further settings, such as the graph mode, as in the manifest.
    """

    platform: str
    index: int
    file: str
    line: int
    module: str
    scratch: tuple[Param, ...]
    options: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Absent:
    """The platform that a target has no Rust function for.

    Attributes:
        platform: "cpu" or "CUDA".
        index: The place of a handler that only fails, in the library's handler table.
        reason: The error of a call there, without the target's name.
    """

    platform: str
    index: int
    reason: str


@dataclass(frozen=True)
class Target:
    """One typed XLA FFI target of a library.

    Attributes:
        crate: The Rust crate that defines it.
        name: The name under which it is called.
        target: The name under which XLA knows it: crate, function and a hash of the contract.
        doc: The Rust doc comment.
        params: Parameters in Rust's order: scalars, inputs and in-outs, then outputs.
        vmap_method: What `jax.vmap` does by default.
        batch_dims: Dimensions along which the function promises independent work.
        has_side_effect: Whether calls are kept although their results are unused.
        vjp: The (crate, name) of the callable that computes the reverse derivative, or None.
        handlers: One for each platform that has a Rust function.
        absent: The platform that has none.
    """

    crate: str
    name: str
    target: str
    doc: str
    params: tuple[Param, ...]
    vmap_method: str | None
    batch_dims: tuple[str, ...]
    has_side_effect: bool
    vjp: tuple[str, str] | None
    handlers: tuple[Handler, ...]
    absent: Absent | None = None

    @cached_property
    def path(self) -> str:
        """`crate.name`, the name that error messages use."""
        return f"{self.crate}.{self.name}"

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that have a handler."""
        return tuple(handler.platform for handler in self.handlers)

    @cached_property
    def inputs(self) -> tuple[Param, ...]:
        """What a call takes: scalars, inputs and in-outs."""
        return tuple(param for param in self.params if param.role != "output")

    @cached_property
    def operands(self) -> tuple[Param, ...]:
        """The array inputs and in-outs, in order."""
        return tuple(param for param in self.params if param.role in ("input", "in_out"))

    @cached_property
    def in_outs(self) -> tuple[Param, ...]:
        """The in-outs, in order."""
        return tuple(param for param in self.params if param.role == "in_out")

    @cached_property
    def outputs(self) -> tuple[Param, ...]:
        """The pure outputs, in order."""
        return tuple(param for param in self.params if param.role == "output")

    @cached_property
    def results(self) -> tuple[Param, ...]:
        """What a call returns: the in-outs, then the outputs."""
        return self.in_outs + self.outputs


@dataclass(frozen=True)
class Manifest:
    """What a library says about itself.

    Attributes:
        version: Version of the jax-callable crate that the library was built with.
        targets: Its targets, in the library's order.
        cuda_libraries: The libraries of CUDA, beside the driver, that it may open.
        raw: The parsed JSON.
    """

    version: str
    targets: tuple[Target, ...]
    cuda_libraries: tuple[str, ...]
    raw: Mapping[str, Any]


def parse(text: str | bytes, source: str) -> Manifest:
    """Reads a manifest.

    Args:
        text: The JSON that the library exports.
        source: The library's path, for error messages.

    Raises:
        AbiVersionError: The manifest has another version.
        ManifestError: The library lists errors of its own, or the JSON is not a manifest.
        NoTargetsError: The library has no targets.
    """
    try:
        raw = json.loads(text)
        abi = _json.integer(raw["abi"])
        if abi == ABI_VERSION:
            problems = _json.items(raw["errors"], _json.string)
            targets = _json.items(raw["targets"], _target)
            version = _json.string(raw["version"])
            cuda_libraries = _json.items(raw["cuda_libraries"], _json.string)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        detail = f"missing key {error}" if isinstance(error, KeyError) else str(error)
        raise ManifestError(
            f"{source}: the manifest of this library is damaged ({detail}); "
            f"rebuild the library with version {__version__} of the jax-callable crate"
        ) from error
    check_abi(abi, source)
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise ManifestError(f"{source}: the library cannot be used until this is fixed:{lines}")
    if not targets:
        raise NoTargetsError(
            f"{source}: the library has no targets. Mark a function with #[jax_callable]; if the "
            "functions live in other crates, keep them with jax_callable::link!(crate_name);"
        )
    return Manifest(version, targets, cuda_libraries, raw)


def check_abi(found: int, source: str) -> None:
    """Refuses a library of another ABI version.

    Raises:
        AbiVersionError: Naming the side that is too old.
    """
    if found == ABI_VERSION:
        return
    if found > ABI_VERSION:
        remedy = "upgrade the Python package: pip install -U jax-callable"
    else:
        remedy = "upgrade the jax-callable crate (cargo update -p jax-callable) and rebuild it"
    raise AbiVersionError(
        f"{source}: the library has ABI version {found}, this Python package (jax-callable "
        f"{__version__}) reads version {ABI_VERSION}; {remedy}"
    )


def _target(raw: Mapping[str, Any]) -> Target:
    vjp = raw["vjp"]
    params = _json.items(raw["params"], lambda param: _param(param, _ROLES))
    return Target(
        crate=_json.string(raw["crate"]),
        name=_json.string(raw["name"]),
        target=_json.string(raw["target"]),
        doc=_json.string(raw["doc"]),
        params=params,
        vmap_method=_json.choice(raw["vmap_method"], VMAP_METHODS),
        batch_dims=_json.items(raw["batch_dims"], _json.string),
        has_side_effect=_json.boolean(raw["has_side_effect"]),
        vjp=None if vjp is None else (_json.string(vjp["crate"]), _json.string(vjp["name"])),
        handlers=_json.items(raw["handlers"], _handler),
        absent=_json.optional(raw["absent"], _absent),
    )


def _param(raw: Mapping[str, Any], roles: tuple[str, ...]) -> Param:
    role = _json.choice(raw["role"], roles)
    name, dtype = _json.string(raw["name"]), _json.string(raw["dtype"])
    if role == "scalar":
        length = raw["length"]
        if length is not None and length != "slice":
            length = _json.size(length)
        return Param(name, role, dtype, length=length)
    dims = _json.optional(raw["dims"], lambda dims: _json.items(dims, _expr))
    rank = _json.size(raw["rank"])
    if dims is not None and len(dims) != rank:
        raise ValueError(f"`{name}` has rank {rank} but {len(dims)} dims")
    return Param(
        name, role, dtype, rank=rank, packed=_json.items(raw["packed"], _json.size), dims=dims
    )


def _expr(raw: Any) -> Expr:
    if not isinstance(raw, Mapping):
        return _json.integer(raw)
    match dict(raw):
        case {"dim": str(name)}:
            return Dim(name)
        case {"axis": [str(param), int(index)]}:
            return Axis(param, index)
        case {"scalar": str(name)}:
            return ScalarValue(name)
        case {"op": op, "args": [left, right]}:
            return Op(_json.choice(op, _OPERATORS), _expr(left), _expr(right))
    raise ValueError(f"unknown dimension expression {json.dumps(raw)}")


def _handler(raw: Mapping[str, Any]) -> Handler:
    named = {"platform", "index", "file", "line", "module", "scratch"}
    scratch = _json.items(raw["scratch"], lambda param: _param(param, _SCRATCH))
    if any(param.dims is None for param in scratch):
        raise ValueError("scratch without dims")
    return Handler(
        platform=_json.choice(raw["platform"], _PLATFORMS),
        index=_json.integer(raw["index"]),
        file=_json.string(raw["file"]),
        line=_json.integer(raw["line"]),
        module=_json.string(raw["module"]),
        scratch=scratch,
        options={key: value for key, value in raw.items() if key not in named},
    )


def _absent(raw: Mapping[str, Any]) -> Absent:
    return Absent(
        platform=_json.choice(raw["platform"], _PLATFORMS),
        index=_json.integer(raw["index"]),
        reason=_json.string(raw["reason"]),
    )
