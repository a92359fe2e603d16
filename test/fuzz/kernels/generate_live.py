"""Changes conditions of branches and bounds of loops so that calls run all blocks, since blocks that do not run hide
faults."""

from __future__ import annotations

from typing import Any

import numpy as np
from contents import contents
from interpret import Interpreter
from memory import cells_of
from syntax import INDEX, BOOL, Call, For, If, Kernel, Node, Statement, lit, read_blocks

_ROUNDS = 4  # each round reaches one more level of nested statements
_TRACED = 2  # the number of calls that are traced


class _Traced(Interpreter):
    """Records which blocks run."""

    ran: set[int]

    def block(self, statements: list[Any]) -> None:
        if (self.must & ~self.dead).any():
            self.ran.add(id(statements))
        super().block(statements)


def enliven(kernel: Kernel, calls: list[Call], index: Node) -> None:
    """Changes the conditions and loops of a kernel so that its first calls run all blocks.

    Args:
        index: an index of the grid, for conditions that hold for every second row.
    """
    for _ in range(_ROUNDS):
        if not _change(kernel.body, _ran(kernel, calls[:_TRACED]), index):
            return


def _ran(kernel: Kernel, calls: list[Call]) -> set[int]:
    ran: set[int] = set()
    for call in calls:
        with np.errstate(all="ignore"):
            traced = _Traced(kernel, call, cells_of(kernel, call, contents(kernel, call)))
            traced.ran = ran
            traced.run()
        if not _is_dead(kernel.body, ran):
            break
    return ran


def _is_dead(body: list[Statement], ran: set[int]) -> bool:
    """True if statements that run contain a block that does not."""
    return any(inside and (id(inside) not in ran or _is_dead(inside, ran)) for s in body for inside in read_blocks(s))


def _change(body: list[Statement], ran: set[int], index: Node) -> bool:
    """Changes the statements that run but have a block that does not run. Returns True if any statement has changed."""
    changed = False
    for s in body:
        dead = [inside for inside in read_blocks(s) if inside and id(inside) not in ran]
        if dead and isinstance(s, If) and s.condition.op != "lit":
            s.condition = _every_second(index) if s.orelse else Node("unary", BOOL, [s.condition], {"name": "not"})
            changed = True
        elif dead and isinstance(s, For):
            changed |= _lengthen(s)
        changed |= any([_change(inside, ran, index) for inside in read_blocks(s) if id(inside) in ran])
    return changed


def _every_second(index: Node) -> Node:
    odd = Node("binary", INDEX, [index, lit(1, INDEX)], {"name": "and"})
    return Node("compare", BOOL, [odd, lit(0, INDEX)], {"ops": ["eq"]})


def _lengthen(s: For) -> bool:
    """Makes a loop over a part of a dim cover the whole dim, and any other loop run at least twice. Returns True if the
    loop has changed."""
    type, upper = s.upper.type, s.upper
    if upper.op == "shape":
        return False
    if upper.op == "binary" and upper.args[0].op == "shape":
        s.upper = upper.args[0]
        return True
    end = 1 + s.step
    if s.lower.op == "lit" and s.lower.attrs["value"] > 2**31 - 1 - end:
        return False
    low = lit(s.lower.attrs["value"] + end, type) if s.lower.op == "lit" else Node("binary", type, [s.lower, lit(end, type)], {"name": "add"})
    s.upper = low if upper.op == "lit" else Node("binary", type, [upper, low], {"name": "max"})
    return True
