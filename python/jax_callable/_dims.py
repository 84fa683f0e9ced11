"""Dimension rules, over ints or JAX's symbolic dimensions.

The rules are data in the manifest. They run here at trace time and in the handler at run time;
both must agree: 64-bit signed arithmetic, checked, with division that rounds down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jax_callable._manifest import Axis, Dim, Expr, Op, Param, ScalarValue, Target
from jax_callable._scalars import Attribute, integer_value

Size = Any
"""An int, or a symbolic dimension of `jax.export`."""

_I64_MAX = 2**63 - 1


@dataclass
class Environment:
    """What a rule may refer to, for one call.

    Attributes:
        target: `crate.name`, for messages.
        shapes: The shape of every array input and in-out, without packed dimensions.
        scalars: The values of the integer static scalars.
        dims: Named dimensions bound so far, each with the place that bound it.
    """

    target: str
    shapes: Mapping[str, Sequence[Size]]
    scalars: Mapping[str, int]
    dims: dict[str, tuple[Size, str]] = field(default_factory=dict)


def environment(
    target: Target, shapes: Sequence[Sequence[Size]], attributes: Mapping[str, Attribute]
) -> Environment:
    """Checks the declared dimensions of the inputs; what they bind serves all other rules.

    Args:
        target: The target.
        shapes: The shapes of the array inputs and in-outs, without batch axes.
        attributes: The static scalars, encoded.

    Raises:
        ValueError: An axis has not the size that its rule asks for.
        OverflowError: A rule leaves the range of 64-bit integers.
    """
    integers = {}
    for param in target.inputs:
        if not param.is_array and param.dtype != "str":
            value = integer_value(param, attributes[param.name])
            if value is not None:
                integers[param.name] = value
    own = {
        param.name: tuple(shape[: param.rank])
        for param, shape in zip(target.operands, shapes, strict=True)
    }
    env = Environment(target.path, own, integers)
    bind(target, env)
    return env


def bind(target: Target, env: Environment) -> None:
    """Binds the named dimensions from the inputs and checks every rule on an input axis.

    Raises:
        ValueError: An axis has not the size that its rule asks for.
        OverflowError: A rule leaves the range of 64-bit integers.
    """
    declared = [
        (param, axis, rule)
        for param in target.operands
        for axis, rule in enumerate(param.dims or ())
    ]
    # All names bind before any expression runs: an expression may use a later input's dimension.
    for param, axis, rule in declared:
        if isinstance(rule, Dim):
            size = env.shapes[param.name][axis]
            here = f"axis {axis} of `{param.name}`"
            bound, where = env.dims.setdefault(rule.name, (size, here))
            if not _equal(size, bound):
                raise ValueError(
                    f"{env.target}: parameter `{param.name}`: axis {axis} is `{rule}` = {size}, "
                    f"but `{rule}` is {bound} from {where}{_constraint(size, bound)}"
                )
    for param, axis, rule in declared:
        if not isinstance(rule, Dim):
            size = env.shapes[param.name][axis]
            wanted = evaluate(rule, env, f"parameter `{param.name}`: axis {axis}")
            if not _equal(size, wanted):
                meaning = "" if isinstance(rule, int) else f" (`{rule}`)"
                raise ValueError(
                    f"{env.target}: parameter `{param.name}`: axis {axis} must be "
                    f"{wanted}{meaning}, got {size}{_constraint(size, wanted)}"
                )


def scratch_shape(scratch: Param, env: Environment) -> tuple[Size, ...]:
    """The shape of a workspace, packed dimensions included.

    Raises:
        ValueError: Its rule gives a negative size.
        OverflowError: The rule leaves the range of 64-bit integers.
    """
    place = f"scratch `{scratch.name}`"
    rules = enumerate(scratch.dims or ())
    return (
        *(evaluate(rule, env, f"{place}: axis {axis}") for axis, rule in rules),
        *scratch.packed,
    )


def output_shape(target: Target, output: Param, env: Environment) -> tuple[Size, ...]:
    """The shape of one output by its own rule, without packed dimensions.

    Raises:
        ValueError: There is no rule that fits, or it gives a negative size.
        OverflowError: The rule leaves the range of 64-bit integers.
    """
    if output.dims is not None:
        return tuple(
            evaluate(rule, env, f"output `{output.name}`: axis {axis}")
            for axis, rule in enumerate(output.dims)
        )
    if not target.operands:
        raise ValueError(
            f"{env.target}: output `{output.name}` has no shape: there is no array input to take "
            f"it from. Pass output_dims={{'{output.name}': ...}}, or declare "
            f"output_dims({output.name} = (...)) in Rust"
        )
    first = target.operands[0]
    if first.rank != output.rank:
        raise ValueError(
            f"{env.target}: output `{output.name}` has rank {output.rank}, but the first array "
            f"input `{first.name}`, whose shape it would take, has rank {first.rank}. Pass "
            f"output_dims={{'{output.name}': ...}}, or declare #[dims(...)] in Rust"
        )
    return tuple(env.shapes[first.name])


def evaluate(rule: Expr, env: Environment, place: str) -> Size:
    """The value of a rule, which must be a possible size: not negative.

    Args:
        rule: The expression.
        env: What it refers to.
        place: What the value is for, to begin error messages with.

    Raises:
        ValueError: A zero divisor, a name that nothing binds, or a negative result.
        OverflowError: A step leaves the range of 64-bit integers.
    """
    value = _evaluate(rule, env, place)
    if _is_negative(value):
        raise ValueError(f"{env.target}: {place}: `{rule}` is {value}, which is no size")
    return value


def _evaluate(rule: Expr, env: Environment, place: str) -> Size:
    match rule:
        case int():
            return rule
        case Dim(name):
            if name not in env.dims:
                raise ValueError(f"{env.target}: {place}: no input binds the dimension `{name}`")
            return env.dims[name][0]
        case Axis(param, index):
            return env.shapes[param][index]
        case ScalarValue(name):
            value = env.scalars[name]
        case Op():
            left = _evaluate(rule.left, env, place)
            right = _evaluate(rule.right, env, place)
            if rule.op in ("/", "%", "div_ceil") and isinstance(right, int) and right == 0:
                raise ValueError(f"{env.target}: {place}: `{rule}` divides by zero")
            value = _apply(rule.op, left, right)
    if isinstance(value, int) and not -_I64_MAX - 1 <= value <= _I64_MAX:
        raise OverflowError(
            f"{env.target}: {place}: `{rule}` is {value}, out of the range of 64-bit integers"
        )
    return value


def _apply(op: str, left: Size, right: Size) -> Size:  # noqa: PLR0911 - one line per operator
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left // right
        case "%":
            return left % right
        case "div_ceil":
            return -(-left // right)
        case "min" | "max":
            return _extremum(op, left, right)
    raise AssertionError(op)


def _extremum(op: str, left: Size, right: Size) -> Size:
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right) if op == "min" else max(left, right)
    from jax import core  # noqa: PLC0415 - symbolic dimensions only exist where JAX does

    return core.min_dim(left, right) if op == "min" else core.max_dim(left, right)


def _equal(left: Size, right: Size) -> bool:
    # Symbolic dimensions compare unequal when equality cannot be decided.
    return bool(left == right)


def _is_negative(size: Size) -> bool:
    if isinstance(size, int):
        return size < 0
    from jax_callable._primitive import InconclusiveDimensionOperation  # noqa: PLC0415

    try:
        return bool(size < 0)
    except InconclusiveDimensionOperation:
        return False  # The sign is open until the size is known: the handler checks it then.


def _constraint(left: Size, right: Size) -> str:
    if isinstance(left, int) and isinstance(right, int):
        return ""
    return (
        f". For symbolic shapes, add the constraint '{left} == {right}' to the scope: "
        f"jax.export.symbolic_shape(..., constraints=['{left} == {right}'])"
    )
