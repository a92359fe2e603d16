"""Makes an operator of torch, `torch.ops.mlafix.<function>`, of each public function: converts arguments to the form in
which torch passes them, and back.

A function calls its operator if torch must see the call (torch.compile, export, fake, meta and functional tensors,
dispatch modes, subclasses). The operator's kernel is the function itself on plain tensors. The operator's fake
implementation is the function on tensors without memory; it checks the kernel's arguments instead of launching
(`_launch.launch`). torch never traces the text of a function, so decisions that depend on sizes are made when the
operator runs.

The schema of an operator follows from the function's signature. `_torch_ops` registers the operators; this module does
not need torch.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from typing import Any, Callable, NamedTuple

from .._launcher.arguments import wrong
from .._launcher.arrays import dtype_name, is_torch
from .formats import FORMATS, check_format
from .rope import Rope, check_rope

WRITTEN = "Tensor(!)"
"""The schema type of a tensor that the operator writes to."""


class Passed(NamedTuple):
    """The form in which torch passes an argument: one or more (type, suffix) pairs. A suffix is appended to the
    argument's name."""

    types: tuple[tuple[str, str], ...]
    flat: Callable[[Any], tuple[Any, ...]]
    whole: Callable[..., Any]


def _flat_one(value: Any) -> tuple[Any, ...]:
    return (value,)


def _whole_one(value: Any) -> Any:
    return value


def _as(kind: str) -> Passed:
    return Passed(((kind, ""),), _flat_one, _whole_one)


def _flat_number(value: Any) -> tuple[Any, ...]:
    """Splits an argument that is an array or a number into two: the array or None, and the number or None."""
    # The test for None comes first, since torch 2.11 cannot trace a type test of None.
    return (value, None) if value is not None and is_torch(value) else (None, value)


def _whole_number(array: Any, number: Any) -> Any:
    return number if array is None else array


# The fields of formats that are not tensors: the field's name, its schema type, and the default for formats without the
# field.
_FORMAT_FIELDS: tuple[tuple[str, str, Any], ...] = (
    ("power_of_two", "bool", False), ("rounding", "str", ""), ("tiles", "str?", None), ("first_row", "SymInt", 0),
    ("clear_padding", "bool", False), ("quantize_from", "str", ""))  # fmt: skip
_FIELDS_OF = {name: tuple(field.name for field in dataclasses.fields(kind)) for name, kind in FORMATS.items()}  # type: ignore[arg-type]
_NUMBERS = {name: field for name, fields in _FIELDS_OF.items() for field in ("scale", "global_scale") if field in fields}


def _flat_format(value: Any) -> tuple[Any, ...]:
    """Splits a format into its name, its scales, its array or number (`scale` or `global_scale`), and its other fields."""
    if value is None:
        return (None, None, None, None, *(default for _, _, default in _FORMAT_FIELDS))
    check_format(value)
    name = type(value).__name__
    fields, number = _FIELDS_OF[name], _NUMBERS.get(name)
    scales = value.scales if "scales" in fields else None
    numbers = (None, None) if number is None else _flat_number(getattr(value, number))
    return (name, scales, *numbers, *(getattr(value, field) if field in fields else default for field, _, default in _FORMAT_FIELDS))


def _whole_format(name: Any, scales: Any, array: Any, number: Any, *more: Any) -> Any:
    if name is None:
        return None
    given = {field: value for (field, _, _), value in zip(_FORMAT_FIELDS, more)}
    given["scales"] = scales
    if name in _NUMBERS:
        given[_NUMBERS[name]] = _whole_number(array, number)
    return FORMATS[name](**{field: given[field] for field in _FIELDS_OF[name]})


def _flat_list(value: Any) -> tuple[Any, ...]:
    """Splits an array or a sequence of arrays into a list, and True if it was a sequence."""
    is_list = isinstance(value, (list, tuple))
    return list(value) if is_list else [value], is_list


def _whole_list(arrays: Any, is_list: bool) -> Any:
    return arrays if is_list else arrays[0]


_START, _STOP, _STEP, _WHOLE, _NEW, _REST = (1 << bit for bit in range(6))
"""Bits that encode the kind of a part of an index: START, STOP and STEP for the numbers that a slice has; WHOLE for an
integer; NEW for None; REST for an Ellipsis."""


def _flat_index(value: Any) -> tuple[Any, ...]:
    """Encodes each part of an index as four integers: its kind and up to three numbers."""
    if value is None:
        return (None,)
    flat: list[Any] = []
    for part in value if isinstance(value, tuple) else (value,):
        if part is None or part is Ellipsis:
            flat += [_NEW if part is None else _REST, 0, 0, 0]
        elif isinstance(part, slice):
            given = [(kind, number) for kind, number in ((_START, part.start), (_STOP, part.stop), (_STEP, part.step))]
            flat += [sum(kind for kind, number in given if number is not None), *(0 if number is None else number for _, number in given)]
        else:
            flat += [_WHOLE, part, 0, 0]
    return (flat,)


def _whole_index(flat: Any) -> Any:
    if flat is None:
        return None
    parts: list[Any] = []
    for i in range(0, len(flat), 4):
        kind, *numbers = flat[i : i + 4]
        if kind in (_NEW, _REST):
            parts.append(None if kind == _NEW else Ellipsis)
        elif kind == _WHOLE:
            parts.append(numbers[0])
        else:
            parts.append(slice(*(number if kind & bit else None for bit, number in zip((_START, _STOP, _STEP), numbers))))
    return tuple(parts)


def _flat_dtype(value: Any) -> tuple[Any, ...]:
    return (None if value is None else dtype_name(value),)


def _flat_bases(value: Any) -> tuple[Any, ...]:
    """Encodes a base, or several bases as one word: "2,e,e"."""
    return (",".join(value) if isinstance(value, (tuple, list)) and all(isinstance(base, str) for base in value) else value,)


def _whole_bases(text: Any) -> Any:
    return tuple(text.split(",")) if "," in text else text


def _flat_rope(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (None, None, False, False, None)
    check_rope(value)
    return value.positions, value.table, value.interleaved, value.inverse, value.start


def _whole_rope(positions: Any, table: Any, interleaved: bool, inverse: bool, start: Any) -> Any:
    return None if positions is None else Rope(positions, table, interleaved=interleaved, inverse=inverse, start=start)


_FORMAT = Passed(
    (("str?", ""), (f"{WRITTEN}?", "_scales"), ("Tensor?", "_scale"), ("Scalar?", "_scale_number"),
     *((kind, f"_{field}") for field, kind, _ in _FORMAT_FIELDS)), _flat_format, _whole_format)  # fmt: skip
_ARRAY_OR_FLOAT = Passed((("Tensor?", ""), ("Scalar?", "_number")), _flat_number, _whole_number)
_ARRAY_OR_INT = Passed((("Tensor?", ""), ("SymInt?", "_number")), _flat_number, _whole_number)

# The form of an argument by its annotation. A float is passed as a Scalar, since torch would turn a symbol that is
# passed as a float into a constant.
_PASSED = {
    "Array": _as("Tensor"),
    "Array | None": _as("Tensor?"),
    "Sequence[Array]": _as("Tensor[]"),
    "Array | Sequence[Array]": Passed((("Tensor[]", ""), ("bool", "_is_list")), _flat_list, _whole_list),
    "Array | float": _ARRAY_OR_FLOAT,
    "int | Array": _ARRAY_OR_INT,
    "int | Array | None": _ARRAY_OR_INT,
    "OutFormat": _FORMAT,
    "OutFormat | None": _FORMAT,
    "Rope | None": Passed((("Tensor?", "_positions"), ("Tensor?", "_table"), ("bool", "_interleaved"), ("bool", "_inverse"), ("SymInt?", "_start")),
                          _flat_rope, _whole_rope),
    "bool": _as("bool"),
    "float": _as("Scalar"),
    "float | None": _as("Scalar?"),
    "int": _as("SymInt"),
    "int | None": _as("SymInt?"),
    "LseLayout": _as("str"),
    "Base": _as("str"),
    "Bases": Passed((("str", ""),), _flat_bases, _whole_bases),
    "Index": Passed((("SymInt[]?", ""),), _flat_index, _whole_index),
    "DTypeLike": Passed((("str?", ""),), _flat_dtype, _whole_one),
}


FAKE = type("Fake", (), {"__repr__": lambda self: "FAKE"})()
"""Passed to a function in place of a stream to check a call on tensors without memory instead of launching it."""

_MISSING = inspect.Parameter.empty


class Operator:
    """The operator of a public function, with an overload for each choice of the optional arrays that are written.

    An overload declares the arrays of its choice as written, and has no arguments for the others, since Inductor and torch.cond do not
    accept None for an array that an operator writes. The overload without arrays is functional if the function writes to no other array.

    Args:
        function: the public function. Its arguments are arrays, numbers and words, and a `stream`. The first one is an
            array.
        writes: the arguments that the function writes to, besides `outputs` and the scales of formats, which it always
            writes.
        outputs: maps the arrays that the function returns, in order, to the name of a flag argument or "". The function
            allocates an array that is not given, unless its flag is False.
    """

    def __init__(self, function: Callable[..., Any], writes: tuple[str, ...], outputs: dict[str, str]) -> None:
        parameters = [one for name, one in inspect.signature(function).parameters.items() if name != "stream"]
        self.name = function.__name__.lstrip("_")
        self.function = function
        self.outputs = tuple(outputs.items())
        self.defaults = {one.name: one.default for one in parameters}
        self.positional = tuple(one.name for one in parameters if one.kind is not one.KEYWORD_ONLY)
        self.passed = tuple((one.name, _PASSED[one.annotation]) for one in parameters)
        ends = list(itertools.accumulate(len(passed.types) for _, passed in self.passed))
        # For each argument: its name, the function that assembles it, and the range of operator arguments of which it
        # consists.
        self.parts = tuple((name, passed.whole, end - len(passed.types), end) for (name, passed), end in zip(self.passed, ends))
        # The parameters of all overloads, as (type, name).
        written = {*writes, *outputs}
        self.arguments = tuple((kind.replace("Tensor", WRITTEN) if name in written and not ending else kind, name + ending)
                               for name, passed in self.passed for kind, ending in passed.types)  # fmt: skip
        self.choices = tuple(i for i, (kind, _) in enumerate(self.arguments) if kind == f"{WRITTEN}?")
        # The overloads by name, which `_torch_ops` sets.
        self.overloads: dict[str, Any] = {}

    def chosen(self) -> dict[str, tuple[int, ...]]:
        """Maps the name of each overload to the optional arrays that it takes, as indices of `arguments`."""
        sets = itertools.chain.from_iterable(itertools.combinations(self.choices, count) for count in range(len(self.choices) + 1))
        return {self._overload_name(chosen): chosen for chosen in sets}

    def _overload_name(self, chosen: tuple[int, ...]) -> str:
        return "_".join([self.arguments[i][1] for i in chosen])

    def schema(self, chosen: tuple[int, ...]) -> str:
        """Returns the declaration of an overload in torch's syntax."""
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        declared = []
        for i, (kind, name) in enumerate(self.arguments):
            if i in chosen or i not in self.choices:
                kind = kind.rstrip("?") if i in chosen else kind
                declared.append(f"{kind.replace('(!)', f'({next(letters)}!)') if '(!)' in kind else kind} {name}")
        new = {self.arguments[i][1] for i in self.choices if i not in chosen}
        returns = ["Tensor" for name, _ in self.outputs if name in new]
        overload = self._overload_name(chosen)
        return f"{self.name}{overload and '.'}{overload}({', '.join(declared)}) -> ({', '.join(returns)})"

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the operator through torch. torch.compile traces this method."""
        given = {**self.defaults, **dict(zip(self.positional, args)), **kwargs}
        stream = given.pop("stream", None)
        if stream is not None:
            raise wrong("stream", "None, since torch picks the stream of a traced call", stream)
        if len(args) > len(self.positional) or len(given) > len(self.passed) or any(value is _MISSING for value in given.values()):
            self.function(*args, **kwargs)  # raises the error that says what is wrong
        flat: list[Any] = []
        for name, passed in self.passed:
            flat += passed.flat(given[name])
        chosen = tuple([i for i in self.choices if flat[i] is not None])
        made = self.overloads[self._overload_name(chosen)](*[flat[i] for i in range(len(flat)) if i in chosen or i not in self.choices])
        if not self.outputs:
            return None
        new = list(made) if isinstance(made, (tuple, list)) else [made]
        results = [self._result(given, name, wanted, new) for name, wanted in self.outputs]
        return tuple(results) if len(results) > 1 else results[0]

    def _result(self, given: dict[str, Any], name: str, wanted: str, new: list[Any]) -> Any:
        """Returns an output of a call: the array that was passed, else the next new array, or None if it is not wanted."""
        if given[name] is not None:
            return given[name]
        made = new.pop(0)
        return made if not wanted or given[wanted] else None

    def run(self, chosen: tuple[int, ...], taken: tuple[Any, ...], stream: Any = None) -> Any:
        """Runs the function for an overload that torch calls. Returns the outputs that were not passed. An output that
        is not wanted is an empty tensor."""
        rest = iter(taken)
        flat = [next(rest) if i in chosen or i not in self.choices else None for i in range(len(self.arguments))]
        given = {name: flat[begin] if whole is _whole_one else whole(*flat[begin:end]) for name, whole, begin, end in self.parts}
        results = self.function(**given, stream=stream)
        first = given[self.positional[0]]
        like = first[0] if isinstance(first, (list, tuple)) else first
        results = results if isinstance(results, tuple) else (results,)
        new = [like.new_empty(0) if result is None else result for (name, _), result in zip(self.outputs, results) if given[name] is None]
        return tuple(new) if len(new) > 1 else new[0] if new else None


OPERATORS: dict[str, Operator] = {}
"""The operators of all functions of this package that launch a kernel, by name."""
