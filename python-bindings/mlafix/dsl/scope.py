"""Finds the names that statements assign, and the names that a function takes from outside. The translator needs the
assigned names, because a loop carries the values of the names that its body assigns, and a branch yields them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence


def targets(node: ast.expr) -> list[str]:
    """Returns the names that an assignment to `node` defines."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [name for element in node.elts for name in targets(element)]
    if isinstance(node, ast.Starred):
        return targets(node.value)
    return []


def assigned(statements: Iterable[ast.stmt]) -> list[str]:
    """Returns the names that statements may assign, in the order of the text."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                names.update(dict.fromkeys(name for target in node.targets for name in targets(target)))
            elif isinstance(node, (ast.AugAssign, ast.For, ast.AnnAssign)):
                names.update(dict.fromkeys(targets(node.target)))
    return list(names)


def stored(statements: Iterable[ast.stmt]) -> list[str]:
    """Returns the names of the tensors and lists to whose elements statements may assign."""
    names: dict[str, None] = {}
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names[node.value.id] = None
    return list(names)


def surely_assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """Returns the names that statements assign on every path. Omits names that only loops assign, since a loop may have
    no iteration."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign):
            names.update(name for target in statement.targets for name in targets(target))
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            names.update(targets(statement.target))
        elif isinstance(statement, ast.If):
            names |= surely_assigned(statement.body) & surely_assigned(statement.orelse)
    return names


def own(function: ast.FunctionDef) -> frozenset[str]:
    """Returns the local names of a function in Python's sense: its arguments and the names that its body assigns. Names
    that only comprehensions assign are not included."""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    inner = {name for node in nodes if isinstance(node, ast.comprehension) for name in ast.walk(node.target)}
    names = [node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in inner]
    return frozenset([*(argument.arg for argument in arguments(function.args)), *names])


def arguments(declared: ast.arguments) -> list[ast.arg]:
    """Returns a function's arguments in order: positional ones, keyword-only ones, ``*args`` and ``**kwargs``."""
    several = [extra for extra in (declared.vararg, declared.kwarg) if extra is not None]
    return [*declared.posonlyargs, *declared.args, *declared.kwonlyargs, *several]


def outside(tree: ast.AST, inside: frozenset[str]) -> Iterator[ast.expr]:
    """Yields the names that a syntax tree reads and that are not in `inside`, in the order of the text. Yields
    attributes whole: ``math.pi``, not ``math``. Works without recursion, since a tree may be deeper than Python's
    stack."""
    open_: list[tuple[ast.AST, frozenset[str]]] = [(tree, inside)]
    while open_:
        node, inside = open_.pop()
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and isinstance(node, (ast.Name, ast.Attribute)):
            if root.id not in inside:
                yield node
            continue
        within, before = inside, []
        if isinstance(node, ast.Lambda):
            within = inside.union(argument.arg for argument in arguments(node.args))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            before = [(node.generators[0].iter, inside)]  # evaluated outside of the comprehension's scope
            within = inside.union(name for part in node.generators for name in targets(part.target))
        open_ += [*reversed([(part, within) for part in ast.iter_child_nodes(node)]), *before]
