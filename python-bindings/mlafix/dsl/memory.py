"""Translates uses of tensors: sizes of dims, loads and stores of rows and elements, presence of optional tensors."""

from __future__ import annotations

import ast
from typing import Any

from . import hints
from .context import Context
from .types import Dim
from .values import Dyn, Element, Tensor, as_number, describe

_INTEGERS = {"i32", "i64", "index"}
_NUMBERS = _INTEGERS | {"f32"}


class Memory:
    """Creates accesses to tensors and queries about them."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    def dim(self, tensor: Tensor, position: int, node: ast.AST) -> Dyn:
        return self.ctx.wrap(self.ctx.builder.dim(tensor.value, position, self.ctx.at(node)))

    def named_dim(self, name: Any, node: ast.AST) -> Dyn:
        """Returns the size of the dim or factor with this name, from the first tensor that has it and is not optional.
        Fails if no such tensor has it."""
        known = dict.fromkeys(dim.name for _, _, dim in self.given_dims())
        for tensor, position, dim in self.given_dims():
            if dim.name and dim.name == name:
                return self.dim(tensor, position, node)
        factor = self.factor(name, node)
        if factor is not None:
            return factor
        names = ", ".join(f'"{option}"' for option in known if option)
        hint = hints.of_factor(name, self.ctx.tensors) or hints.of_extent(name) or hints.of_dim(name, known)
        self.ctx.fail(node, f"expected the name of a dim of a tensor that is always given ({names}), got {describe(name)}{hint}")

    def size(self, name: str, node: ast.AST) -> Dyn | None:
        """Returns the number of elements of a row along a dim, as an index. Returns None if only optional tensors have
        the dim."""
        if name.isdigit():
            return self.ctx.lift(int(name), node, "index")
        for tensor, position, dim in self.given_dims():
            if name in (dim.name, dim.spelled):
                return self.dim(tensor, position, node)
        return self.factor(name, node)

    def factor(self, name: Any, node: ast.AST) -> Dyn | None:
        """Returns the size of a dim that occurs as a factor of a product: the product's size divided by the other
        factor. Returns None if there is no such product, or if the other factor is unknown."""
        for tensor, position, dim in self.given_dims():
            others = [factor for factor in dim.factors if factor != name]
            if len(others) != 1 or len(dim.factors) != 2:
                continue
            (other,) = others
            known = [(owner, place) for owner, place, named in self.given_dims() if named.name == other]
            if not other.isdigit() and not known:
                continue
            by = self.ctx.lift(int(other), node, "index") if other.isdigit() else self.dim(*known[0], node)
            return self.ctx.wrap(self.ctx.builder.binary("floordiv", self.dim(tensor, position, node).value, by.value, self.ctx.at(node)))
        return None

    def given_dims(self) -> list[tuple[Tensor, int, Dim]]:
        """Returns the dims of the tensors that are not optional, each as (tensor, position, dim)."""
        given = [tensor for tensor in self.ctx.tensors if not tensor.annotation.optional]
        return [(tensor, position, dim) for tensor in given for position, dim in enumerate(tensor.annotation.dims)]

    def row_dim(self, name: Any, node: ast.AST) -> str:
        """Checks that rows may lie along the dim with this name, and returns the name."""
        dims = [tensor.annotation.dims[-1] for tensor in self.ctx.tensors if tensor.annotation.dims]
        last = {dim.name for dim in dims} | {factor for dim in dims for factor in dim.factors} - {""}
        if not isinstance(name, str) or name not in last:
            options = ", ".join(f'"{option}"' for option in sorted(last))
            self.ctx.fail(node, f"expected the name of a dim that rows lie along ({options}), got {describe(name)}{hints.of_dim(name, last)}")
        return name

    def present(self, tensor: Tensor, node: ast.AST) -> Dyn | bool:
        """Returns True for a tensor that is not optional, else a value that tells whether the call passes the
        tensor."""
        if not tensor.annotation.optional:
            return True
        return self.ctx.wrap(self.ctx.builder.present(tensor.value, self.ctx.at(node)))

    def read(self, element: Element, node: ast.AST, where: Dyn | bool | None = None, otherwise: Dyn | None = None,
             dtype: str = "") -> Dyn:
        """Loads a row or an element as `dtype`, by default as the type that the tensor's elements have in a body."""
        tensor, ctx = element.tensor, self.ctx
        predicate = ctx.predicate(where, node)
        other = otherwise.value if otherwise is not None and predicate is not None else None
        dtype = dtype or tensor.element
        return ctx.wrap(ctx.builder.load(tensor.value, element.indices, predicate, other, dtype, ctx.at(node), element.group, element.member,
                                         element.begin, element.end))

    def read_into(self, element: Element, node: ast.AST, where: Dyn | bool | None, dim: str, first: int, each: int) -> Dyn:
        """Loads a row or slice into a row along `dim`. The loaded elements begin at element `first` of the new row, and
        each of them is repeated `each` times."""
        ctx = self.ctx
        predicate = ctx.predicate(where, node)
        place = element.tensor.value, element.indices
        return ctx.wrap(ctx.builder.load_into(*place, predicate, dim, first, each, element.tensor.element, ctx.at(node), element.begin, element.end))

    def check_order(self, tensor: Tensor, node: ast.AST) -> None:
        """Fails for an output whose indices are swapped, such as ``y[t, h]`` of "n H D" in ``for h, t in grid("n",
        "H")``: the grid covers this output only if n = H."""
        indices = self.ctx.indices
        if tensor.annotation.access != "write" or not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple) or not indices:
            return
        names = [part.id if isinstance(part, ast.Name) else "" for part in node.slice.elts]
        along = [indices[name][1] if name in indices and self.ctx.env.get(name) is indices[name][0] else "" for name in names]
        dims = [dim.name for dim in tensor.annotation.dims[: len(along)]]
        if along != dims and sorted(along) == sorted(dims) and all(along) and len(set(along)) == len(along):
            right = ", ".join(names[along.index(dim)] for dim in dims)
            grid = " and ".join(f'{name} along "{dim}"' for name, dim in zip(names, along))
            self.ctx.fail(node, f"expected {tensor.name}[{right}], by the dims of '{tensor.name}', got {ast.unparse(node)}; the grid has {grid}")

    def write(self, element: Element, value: Any, value_node: ast.AST, node: ast.AST, where: Dyn | bool | None = None) -> None:
        tensor, ctx = element.tensor, self.ctx
        if tensor.annotation.access == "read":
            ctx.fail(node, f"expected a tensor declared with Out or InOut to store to, got '{tensor.name}', which is In")
        if where is None and not ctx.guards and not ctx.levels:
            self.check_order(tensor, node)
        if isinstance(as_number(value), float) and tensor.element in _INTEGERS and "f32" not in tensor.stores:
            stored = tensor.annotation.dtype.name
            ctx.fail(value_node, f"expected {tensor.element} to store to '{tensor.name}' ({stored}), got {value!r}; {tensor.element}(…) converts")
        value = ctx.lift(value, value_node, tensor.element)
        if value.type.kind == "state":
            place = f"{tensor.name}[…]"
            ctx.fail(value_node, f"expected a scalar or a row to store, got {describe(value)}{hints.of_stored_state(element, place)}")
        if value.type.kind in ("scalar", "row") and value.type.dtype not in tensor.stores:
            stored, allowed = tensor.annotation.dtype.name, " or ".join(tensor.stores)
            converts = f"; {tensor.element}(…) converts" if {tensor.element, value.type.dtype} <= _NUMBERS else ""
            if value.type.dtype == "bool" and tensor.element in _NUMBERS:
                converts = f"; {tensor.element}(…) makes 1 of true and 0 of false"
            ctx.fail(value_node, f"expected {allowed} to store to '{tensor.name}' ({stored}), got {describe(value)}{converts}")
        dim = element.dim
        is_whole = dim is not None and not element.is_part and not element.end
        fits = (dim, *(tensor.annotation.dims[-1].factors[:1] if is_whole else ()))  # a row with one element per group is broadcast
        # A slice accepts a row along any named dim. The compiler checks the row's size when the name is bound.
        is_open = bool(element.end) and not value.type.dim.isdigit()
        if value.type.kind == "row" and not is_open and (dim is None or value.type.dim not in fits):
            expected = f"{tensor.element}, an element," if dim is None else f"a row along {dim}"
            hint = "" if dim is None else hints.of_stored_row(element, value.type.dim)
            ctx.fail(value_node, f"expected {expected} to store to '{tensor.name}', got {describe(value)}{hint}")
        predicate = ctx.predicate(where, node)
        ctx.builder.store(value.value, tensor.value, element.indices, predicate, ctx.at(node), element.group, element.member,
                          element.begin, element.end)
