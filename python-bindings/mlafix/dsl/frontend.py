"""Translates a Python function to a kernel: its arguments, its grid, and the resulting text."""

from __future__ import annotations

import ast
import dataclasses
import types
from collections.abc import Sequence
from typing import Any

from .._files.toolchain import compiler
from .._reports import diagnostics
from ..errors import CompileError
from . import annotations, built_ins, hints
from .context import Context
from .inline import Inline
from .options import Options
from .source import Source
from .statements import Statements
from .types import TENSOR_SUFFIX, Dim, DType, ScalarType, TensorType, i32, is_argument
from .values import Dyn, Element, OfRows, Tensor, counted, describe, field_names, holds_arguments, is_record

_TOP = "a docstring, assignments of sizes and constants, promises, and one 'for … in grid(…)' or 'for … in segments(…)'"


class Frontend:
    """Translates one function with a KernelBuilder.

    Args:
        function: the decorated function.
        options: the decorator's options.
    """

    def __init__(self, function: types.FunctionType, options: Options = Options()) -> None:
        self.source = Source(function)
        node = self.source.node
        self.builder = compiler().KernelBuilder(self.source.name, self.source.location(node))
        if options.bounds == "prove":
            self.builder.prove_bounds(self.source.location(node))
        for kind in options.allow:
            self.builder.allow(kind, self.source.location(node))
        for field in options.plan:
            self.builder.plan(field, self.source.location(node))
        self.context = Context(self.builder, self.source, {})
        self.body = Statements(self.context)
        # `scalars` has the scalar arguments that a call may also pass in a tensor. `numbers` has each of them with that
        # tensor.
        self.scalars: dict[str, Dyn] = {}
        self.numbers: dict[str, tuple[Dyn, Tensor]] = {}
        # The Python argument that declares each argument of the kernel.
        self.places: dict[str, ast.arg] = {}

    def run(self) -> str:
        """Returns the kernel in MLIR's syntax, with locations in the Python file. Raises CompileError."""
        node = self.source.node
        self.arguments(node)
        self.top(node.body)
        self.check_bases()
        for name, value in self.context.defaults.items():
            self.builder.set_default(name, value, self.source.location(node))
        text: str = self.builder.finish()
        return text

    # -- Arguments ---------------------------------------------------------------------------------------------------

    def arguments(self, node: ast.FunctionDef) -> None:
        given = node.args
        for extra in (given.vararg, given.kwarg):
            if extra is not None:
                self.source.fail(extra, f"expected arguments with names, got '{extra.arg}', which stands for several")
        for default in (*given.defaults, *given.kw_defaults):
            if default is not None:
                self.source.fail(default, f"expected arguments without defaults, got {ast.unparse(default)}")
        if node.returns is not None and not _is_none(node.returns):
            self.source.fail(node.returns, f"expected no return type or None, got -> {ast.unparse(node.returns)}")
        arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs)
        for argument in arguments:
            self.argument(argument)
        # The tensors of `or_tensor` numbers come after all other arguments, so that calls may omit them.
        for argument in arguments:
            if isinstance(self.context.env[argument.arg], OfRows):
                self.tensor_of(argument)

    def argument(self, node: ast.arg) -> None:
        usage = 'In[f32, "n D"], Out[…], InOut[…], Peers[In[…]], List[In[…], 8], index, i64, i32, f32 or bool_, or a record of them'
        if node.annotation is None:
            hint = "; a kernel is a function of its own, outside of classes" if node.arg == "self" else ""
            self.source.fail(node, f"expected a type for '{node.arg}' ({usage}), got none{hint}")
        annotation = annotations.value_of(self.source, node.annotation)
        if is_argument(annotation):
            self.context.env[node.arg] = self.declare(node.arg, annotation, node)
        elif is_record(annotation) and annotations.holds_arguments(annotation):
            self.context.env[node.arg] = self.record(node.arg, annotation, node)
        else:
            self.source.fail(node.annotation, f"expected {usage} as the type of '{node.arg}', got {describe(annotation)}{hints.of_type(annotation)}")

    def record(self, name: str, record: Any, node: ast.arg) -> Any:
        """Adds the arguments that a record declares, and returns the record with these arguments as its fields. A
        nested record without tensors is a record of constants."""
        if not holds_arguments(type(record)):
            self.source.fail(node, f"expected a dataclass with its generated __init__, no __post_init__ and no default_factory, got '{type(record).__name__}'")
        fields = {}
        for field in field_names(record):
            value = getattr(record, field)
            if is_argument(value):
                if isinstance(value, ScalarType) and value.from_tensor:
                    self.source.fail(node, f"expected a number without .or_tensor for the field '{field}' of '{name}', got {value!r}")
                fields[field] = self.declare(field, value, node)
            elif is_record(value) and annotations.holds_tensors(value):
                fields[field] = self.record(f"{name}.{field}", value, node)
        return dataclasses.replace(record, **fields)

    def declare(self, name: str, annotation: Any, node: ast.arg) -> Tensor | Dyn | OfRows:
        """Adds one argument to the kernel and returns it. `node` is the Python argument that declares it, possibly as a
        field of a record."""
        if name == "stream":
            self.source.fail(node, "'stream' is reserved for the launch stream: rename this argument")
        if name in self.places:
            self.source.fail(node, f"expected arguments and fields of different names, got '{name}' twice")
        self.places[name] = node
        location = self.source.location(node)
        if isinstance(annotation, TensorType):
            return self.tensor(name, annotation, location)
        value = self.builder.add_scalar(name, annotation.name, annotation.bound, location)
        number = Dyn(value, self.builder.type(value))
        if not annotation.from_tensor:
            return number
        self.scalars[name] = number
        return OfRows(name)

    def tensor(self, name: str, annotation: TensorType, location: Any) -> Tensor:
        dtype = annotation.dtype
        variable = dtype.name if isinstance(dtype, DType) else ""
        if isinstance(dtype, DType):
            self.context.note_default(dtype.name, dtype.default)
        value = self.builder.add_tensor(
            name,
            [dim.name for dim in annotation.dims],
            dtype.example if isinstance(dtype, DType) else dtype.name,
            variable,
            annotation.access,
            annotation.optional,
            [dim.size or 0 for dim in annotation.dims],
            annotation.fill_value,
            annotation.peers,
            annotation.most,
            annotation.tiles,
            [dim.most or 0 for dim in annotation.dims],
            location,
        )
        tensor = Tensor(name, value, annotation)
        self.context.tensors.append(tensor)
        return tensor

    def check_bases(self) -> None:
        """Fails if the base of an lse has the same name as a dim, a dtype variable or an optional argument."""
        for tensor in self.context.tensors:
            kinds = {tensor.name: "argument"} if tensor.annotation.optional else {}
            if isinstance(tensor.annotation.dtype, DType):
                kinds[tensor.annotation.dtype.name] = "dtype"
            kinds.update({name: "dim" for dim in tensor.annotation.dims for name in (dim.name, *dim.factors)})
            for name in kinds.keys() & self.context.bases:
                self.source.fail(
                    self.places[tensor.name],
                    f"expected another name for {kinds[name]} '{name}', which is the base of a state's lse here: rename it, or "
                    f'give states another base, as base="e" or base=Base("…")',
                )

    def tensor_of(self, node: ast.arg) -> None:
        """Adds the tensor in which a call may pass the number that `node` declares."""
        name = node.arg + TENSOR_SUFFIX
        if name in self.places:
            self.source.fail(node, f"expected no argument '{name}', since .or_tensor of '{node.arg}' adds a tensor with this name, got one: rename it")
        annotation = TensorType("read", i32, (Dim("", 1),), optional=True)
        value = self.builder.add_tensor(name, [""], "i32", "", "read", True, [1], "", False, 0, "", [], self.source.location(node))
        self.numbers[node.arg] = self.scalars[node.arg], Tensor(name, value, annotation)

    def read_numbers(self, node: ast.AST) -> None:
        """Loads, for the current row, the numbers that may be passed in a tensor."""
        for name, (number, tensor) in self.numbers.items():
            here = self.context.lift(self.body.memory.present(tensor, node), node)
            held = self.body.memory.read(Element(tensor, [self.context.index(0, node)]), node)
            held = self.context.convert(held, number.type.dtype, node)
            self.context.env[name] = self.context.wrap(
                self.builder.select(here.value, held.value, number.value, self.source.location(node)))

    # -- The grid ----------------------------------------------------------------------------------------------------

    def top(self, statements: Sequence[ast.stmt]) -> None:
        done = False
        for statement in statements:
            if done:
                self.source.fail(statement, "expected nothing after the grid, got another statement")
            if isinstance(statement, ast.For):
                self.grid(statement)
                done = True
            elif isinstance(statement, (ast.Assign, ast.Expr, ast.Pass)):
                self.body.run([statement])
            else:
                self.source.fail(statement, f"expected {_TOP} in a kernel, got '{_first_word(statement)}'")
        if not done:
            self.source.fail(self.source.node, f"expected {_TOP} in a kernel, got no grid")

    def grid(self, node: ast.For) -> None:
        call = node.iter
        built_in = self.body.expressions.eval(call.func) if isinstance(call, ast.Call) else None
        if node.orelse:
            self.source.fail(node.orelse[0], "expected a grid without else, got one")
        if not isinstance(call, ast.Call) or built_in not in (built_ins.grid, built_ins.segments):
            hint = '; the rows are those of a grid, as for t in grid("n")' if isinstance(call, ast.Call) else ""
            self.source.fail(call, f"expected {built_ins.grid.usage} or {built_ins.segments.usage}, got {ast.unparse(call)}{hint}")
        if built_in is built_ins.grid:
            indices = self.dense(call)
        else:
            indices = self.ragged(call)
        names = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        if len(names) != len(indices) or not all(isinstance(name, ast.Name) for name in names):
            self.source.fail(node.target, f"expected {counted(len(indices), 'name')} for the indices, got {ast.unparse(node.target)}")
        extents = [extent.value if isinstance(extent, ast.Constant) else "" for extent in call.args] if built_in is built_ins.grid else []
        self.context.indices = {}
        for name, index, extent in zip(names, indices, [*extents, *[""] * len(indices)]):
            value = self.context.wrap(index)
            self.body.assign(name, value, name)
            self.context.indices[name.id] = value, str(extent)
        self.read_numbers(node)
        self.body.run(node.body)
        self.builder.end_grid(self.source.location(node))

    def extent(self, node: ast.expr) -> Any:
        value = self.body.expressions.dim_or_size(node, 'grid("{0}")')
        if isinstance(value, str):
            return self.body.memory.named_dim(value, node).value
        if isinstance(value, (tuple, list)):
            self.source.fail(node, f"expected a dim's name, a size or a number as an extent, got {describe(value)}{hints.of_extent(value)}")
        return self.context.index(value, node)

    def dense(self, call: ast.Call) -> list[Any]:
        if call.keywords or not call.args:
            self.source.fail(call, f"expected {built_ins.grid.usage}, got {'keywords' if call.keywords else 'no extent'}")
        extents = [self.extent(argument) for argument in call.args]
        indices: list[Any] = self.builder.begin_forall(extents, self.source.location(call))
        return indices

    def ragged(self, call: ast.Call) -> list[Any]:
        usage = built_ins.segments.usage
        where = None
        for keyword in call.keywords:
            if keyword.arg != "where":
                self.source.fail(keyword.value, f"expected {usage}, got an argument '{keyword.arg}'")
            where = keyword.value
        if len(call.args) < 2:
            self.source.fail(call, f"expected {usage}, got {counted(len(call.args), 'argument')}")
        cu_seqlens = self.body.expressions.eval(call.args[0])
        if not isinstance(cu_seqlens, Tensor):
            self.source.fail(call.args[0], f"expected a tensor for cu_seqlens, got {describe(cu_seqlens)}")
        if cu_seqlens.rank != 1 or cu_seqlens.element != "i32":
            self.source.fail(call.args[0], f'expected cu_seqlens to be declared In[i32, "s"], with one dim, got {cu_seqlens.annotation!r}')
        rows, *inner = [self.extent(argument) for argument in call.args[1:]]
        location = self.source.location(call)
        segment = self.builder.begin_ragged_forall(cu_seqlens.value, rows, inner, location)
        predicate = self.predicate(where, self.context.wrap(segment), call)
        indices: list[Any] = self.builder.begin_ragged_body(predicate.value, location)
        return indices

    def predicate(self, where: ast.expr | None, segment: Dyn, call: ast.Call) -> Dyn:
        """Evaluates ``where=lambda s: …``, or ``where=function`` for an inline function, for a segment. Without
        `where`, returns true."""
        if where is None:
            return self.context.lift(True, call)
        if not isinstance(where, ast.Lambda):
            function = self.body.expressions.eval(where)
            if not isinstance(function, Inline):
                self.source.fail(where, f"expected a lambda or an inline function of a segment, got {describe(function)}")
            result = self.body.inline(function, [segment], {}, call)
            return self.bool_result(result, where)
        names = [argument.arg for argument in where.args.args]
        if len(names) != 1 or where.args.defaults or where.args.vararg or where.args.kwonlyargs or where.args.kwarg:
            self.source.fail(where, f"expected a lambda of one argument, the segment, got {ast.unparse(where)}")
        outer = self.context.env
        self.context.env = {**outer, names[0]: segment}
        try:
            return self.bool_result(self.body.expressions.eval(where.body), where.body)
        finally:
            self.context.env = outer

    def bool_result(self, value: Any, node: ast.AST) -> Dyn:
        result = self.context.lift(value, node) if isinstance(value, (bool, Dyn)) else value
        if not isinstance(result, Dyn) or not result.is_bool:
            self.source.fail(node, f"expected a bool for the predicate, got {describe(value)}")
        return result


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, "None")


def _first_word(node: ast.stmt) -> str:
    return ast.unparse(node).split(maxsplit=1)[0].rstrip(":")


def build(function: types.FunctionType, options: Options = Options()) -> str:
    """Translates a function to a kernel in MLIR's syntax. Raises a CompileError that underlines the faulty expression.

    Args:
        function: the decorated function.
        options: the decorator's options.
    """
    frontend = Frontend(function, options)
    try:
        return frontend.run()
    except CompileError:
        raise
    except (UnicodeError, OverflowError) as error:
        expected = "names and texts that UTF-8 can encode" if isinstance(error, UnicodeError) else "integers of at most 64 bits"
        message = f"expected {expected}, got one that does not fit: {error}"
        node = frontend.source.node
        raise diagnostics.compile_error([("error", message, *frontend.source.place(node))]) from error
