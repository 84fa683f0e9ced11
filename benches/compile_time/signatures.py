"""The signatures that all crates of the comparison have."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

COUNT = 200

Role = Literal["context", "scalar", "text", "in", "in_out", "out"]


@dataclass(frozen=True)
class Param:
    """A parameter; `ty` is that of a scalar or of an array's elements."""

    name: str
    role: Role
    ty: str = ""
    rank: int = 0


@dataclass(frozen=True)
class Signature:
    name: str
    params: tuple[Param, ...]
    is_fallible: bool


def signatures() -> list[Signature]:
    """The same ones every time: 1 to 4 inputs, 1 or 2 results, and what else callables take.

    Every fifth function has a context, every second a scalar or more, every seventh a string,
    every third an in-out; two of three return a `Result`.
    """
    choose = random.Random(1)
    return [_signature(number, choose) for number in range(COUNT)]


def _signature(number: int, choose: random.Random) -> Signature:
    params: list[Param] = []

    def array(name: str, role: Role) -> None:
        rank = choose.choices((1, 2, 3), (4, 4, 1))[0]
        ty = choose.choices(("f32", "f64", "i32", "u8"), (6, 3, 2, 1))[0]
        params.append(Param(name, role, ty, rank))

    if number % 5 == 0:
        params.append(Param("cx", "context"))
    if number % 2 == 0:
        for i in range(choose.choice((1, 2, 3))):
            ty = choose.choices(("f32", "f64", "i64", "u32", "bool"), (4, 2, 2, 2, 1))[0]
            params.append(Param(f"a{i}", "scalar", ty))
    if number % 7 == 0:
        params.append(Param("mode", "text"))
    for i in range(choose.choices((1, 2, 3, 4), (3, 4, 2, 1))[0]):
        array(f"x{i}", "in")
    if number % 3 == 0:
        array("z", "in_out")
    for i in range(choose.choices((1, 2), (3, 1))[0]):
        array(f"y{i}", "out")
    return Signature(f"call{number:03}", tuple(params), number % 3 != 1)
