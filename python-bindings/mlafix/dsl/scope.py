"""Which names statements assign: what loops carry and branches yield."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def targets(node: ast.expr) -> list[str]:
    """Names that an assignment to `node` defines."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [name for element in node.elts for name in targets(element)]
    if isinstance(node, ast.Starred):
        return targets(node.value)
    return []


def assigned(statements: Iterable[ast.stmt]) -> list[str]:
    """Names that may be assigned, in the order of the text."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                names.update(dict.fromkeys(name for target in node.targets for name in targets(target)))
            elif isinstance(node, (ast.AugAssign, ast.For, ast.AnnAssign)):
                names.update(dict.fromkeys(targets(node.target)))
    return list(names)


def stored(statements: Iterable[ast.stmt]) -> list[str]:
    """Names of the tensors and lists of which elements may be assigned."""
    names: dict[str, None] = {}
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names[node.value.id] = None
    return list(names)


def surely_assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that are assigned whichever way the branches go, loops not being entered."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign):
            names.update(name for target in statement.targets for name in targets(target))
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            names.update(targets(statement.target))
        elif isinstance(statement, ast.If):
            names |= surely_assigned(statement.body) & surely_assigned(statement.orelse)
    return names
