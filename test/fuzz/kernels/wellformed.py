"""Checks the rules that every generated or shrunk kernel obeys. Rows of the grid do not race, names have values where
they are used, and no operation has only literals as operands, since Python itself would compute such an operation."""

from __future__ import annotations

from generate_loads import may_be_constant
from rows import may_race
from syntax import Assign, Case, Each, For, If, Kernel, Node, Statement, expressions

# Maps an operation to the least number of its operands that must not be literals. An operation that is not listed may
# have only literals.
_NO_LITERALS = {"unary": 1, "binary": 1, "fma": 1, "compare": 1, "logic": 1, "reduce": 1, "scan": 1, "swap": 1, "top": 1, "element": 1}


def is_well_formed(case: Case) -> bool:
    kernel = case.kernel
    return not may_race(case) and all(map(_is_typed, kernel.nodes())) and _has_values(kernel)


def _is_typed(node: Node) -> bool:
    literals = [argument.op == "lit" for argument in node.args]
    if node.op in ("ifexp", "where") and node.type.dtype != "M":
        condition = node.args[0]
        # A condition that is known at compile time selects a value without conversion, so neither value may be a
        # literal.
        is_known = condition.type.kind == "scalar" and may_be_constant(condition)
        return not any(literals[1:]) if is_known else not all(literals[1:])
    return literals.count(False) >= _NO_LITERALS.get(node.op, 0)


# -- Names ---------------------------------------------------------------------------------------------------------------


def _has_values(kernel: Kernel) -> bool:
    scalars = {scalar.name for scalar in kernel.scalars}
    for inline in kernel.inlines:
        known = _after(inline.body, set(inline.parameters))
        if known is None or not _uses(inline.result) <= known:
            return False
    where = kernel.grid.where
    if where is not None and not _uses(where) <= scalars | {kernel.grid.indices[0]}:
        return False
    if any(not _uses(node) <= scalars for promise in kernel.promises for node in expressions(promise)):
        return False
    return _after(kernel.body, scalars | set(kernel.grid.indices)) is not None


def _uses(node: Node) -> set[str]:
    return {n.attrs["name"] for n in node.walk() if n.op == "name"}


def _after(body: list[Statement], known: set[str]) -> set[str] | None:
    """Returns the names that have values after `body`. Returns None if a name without a value is used."""
    for s in body:
        if any(not _uses(node) <= known for node in expressions(s)):
            return None
        found = _after_statement(s, known)
        if found is None:
            return None
        known = found
    return known


def _after_statement(s: Statement, known: set[str]) -> set[str] | None:
    if isinstance(s, Assign):
        return known | _assigned(s) if not s.aug or s.names[0] in known else None
    if isinstance(s, If):
        read = [s.then, s.orelse]
        if s.condition.op == "lit":  # the front end skips the other branch
            read = read[:1] if s.condition.attrs["value"] else read[1:]
        ends = [end for end in (_after(branch, known) for branch in read) if end is not None]
        return set.intersection(*ends) if len(ends) == len(read) else None
    if isinstance(s, For):
        return known if _after(s.body, known | {s.name}) is not None else None
    if isinstance(s, Each):
        return known if _after(s.body, known | set(s.names)) is not None else None
    return known


def _assigned(s: Assign) -> set[str]:
    """Returns the names to which an assignment gives values. For a list, returns the names of its elements."""
    found: set[str] = set()
    for variable, value in zip(s.names, s.values):
        count = len(value.args) * value.attrs.get("over", 1) if value.op == "list" else 0
        found |= {f"{variable}[{i}]" for i in range(count)} or {variable}
    return found
