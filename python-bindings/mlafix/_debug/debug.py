"""Implements Kernel.debug: finds forbidden accesses and values in the rows of a launch, and output elements that no row
writes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._reports import diagnostics
from ..errors import ArgumentError, CompileError
from .arrays import INTEGERS, DebugArray, make_array, number_of

# Tensors of integers, and tensors that rows read element by element, can decide which elements rows access. The values
# of such a tensor are passed to the compiler if the tensor has at most this many elements.
_MOST_ELEMENTS = 1 << 20

# The values of any other tensor that rows read are passed to the compiler if the tensor has at most this many elements.
_MOST_ROW_ELEMENTS = 1 << 18

# The tolerance of a comparison with a reference for each dtype, relative to max(1, |value|).
_TOLERANCES = {"f32": 1e-4, "f16": 2.0**-9, "bf16": 2.0**-6, "f8e4m3fn": 2.0**-3, "f8e5m2": 2.0**-2}

# The questions of docs/Proofs.md that ask about reads of outputs.
_READS = ("independence", "written before read")


@dataclass(frozen=True)
class Fault:
    """A fault of a launch: something that no kernel may do.

    Attributes:
        question: the kind of the fault. It is either the question of docs/Proofs.md that the fault refutes ("bounds",
            "one writer", "coverage", …), or one of four others. "promise": the launch breaks a promise. "NaN": the
            kernel stores a NaN that it computed from operands that are not NaN. "infinity": it stores an infinity that
            it computed from finite operands. "reference": a stored value differs from the result of the function
            `against`.
        argument: the tensor's name; "" for a promise about no tensor.
        element: the indices of the first faulty element. For a list of tensors, the first index selects the tensor.
        row: the indices of the row of the grid that caused the fault. () for an element that no row writes, and for a
            difference from the reference that only the launch shows, for example because the row was not followed, or
            because the difference does not exceed the largest tolerance of all outputs.
        count: the number of unwritten elements if all elements of the output were checked; else 1.
        file: the source file of the access or promise, or of the operation that produced the NaN or infinity; "" if
            unknown.
        line: the line in `file`, from 1; 0 if unknown.
        column: the column in that line, from 1; 0 if unknown.
        message: the fault in words.
    """

    question: str
    argument: str
    element: tuple[int, ...]
    row: tuple[int, ...] = ()
    count: int = 1
    file: str = ""
    line: int = 0
    column: int = 0
    message: str = ""

    def __str__(self) -> str:
        return f"{_at(self, with_column=True)}{self.message}"


@dataclass(frozen=True)
class Printed:
    """The text that a row of the grid printed.

    Attributes:
        row: the indices of the row.
        text: the printed values, separated by spaces. ``?`` stands for an unknown value.
        file: the source file of the ``print``; "" if unknown.
        line: the line in `file`, from 1; 0 if unknown.
        column: the column in that line, from 1; 0 if unknown.
        message: the row's indices, followed by the text.
    """

    row: tuple[int, ...]
    text: str
    file: str = ""
    line: int = 0
    column: int = 0

    message: str = ""

    def __str__(self) -> str:
        return f"{_at(self, with_column=False)}{self.message}"


def _at(place: Fault | Printed, with_column: bool) -> str:
    """Returns the prefix "file:line: " of a message, or "file:line:column: " with the column. Returns "" if the place
    is unknown."""
    column = f":{place.column}" if with_column else ""
    return f"{place.file}:{place.line}{column}: " if place.line else ""


@dataclass(frozen=True)
class DebugReport:
    """The findings of :meth:`mlafix.Kernel.debug`.

    Attributes:
        faults: the first fault for each question and argument.
        unknown_rows: the number of rows that were not followed to their end, because a condition or an index depends on
            unknown values. Values are unknown if they come from tensors with more than 2^18 elements, or from a few
            functions of rows, such as `top_k`.
        is_whole: true if all rows were followed; false if following stopped after a million operations. The search for
            unwritten elements covers the whole output in either case.
        printed: the texts that rows printed, in the order of the rows; at most the first 10,000.
        printed_more: the number of texts that rows printed after the first 10,000.
        refused: the compiler's error if it refused the kernel, because a launch with these or other arguments may be
            faulty. The rows were then followed on the host, but nothing was launched. "" if it did not refuse the
            kernel.
    """

    faults: tuple[Fault, ...]
    unknown_rows: int = 0
    is_whole: bool = True
    printed: tuple[Printed, ...] = ()
    printed_more: int = 0
    refused: str = ""


class _Call(NamedTuple):
    """A call of a mlafix.Kernel."""

    kernel: Any
    described: Sequence[dict[str, Any]]
    """The arguments of the kernel's signature, in order."""
    args: tuple[object, ...]
    arrays: dict[str, DebugArray]
    """The tensors and lists that were passed, by name."""

    def outputs(self, *accesses: str) -> list[str]:
        """Returns the names of the tensors that the kernel accesses in one of these ways, "write" or "update"."""
        return [arg["name"] for arg in self.described if arg.get("access") in accesses and arg["name"] in self.arrays]

    def given(self, replaced: Mapping[str, DebugArray]) -> tuple[object, ...]:
        """Returns the arguments, with some of the tensors replaced."""
        return tuple(replaced[arg["name"]].value if arg["name"] in replaced else value for arg, value in zip(self.described, self.args))


def reads_ranks(described: Sequence[dict[str, Any]]) -> bool:
    """True if an argument holds tensors of all ranks. Rows of such a kernel cannot be followed on the host."""
    return any(arg["kind"] == "peers" for arg in described)


def debug(kernel: Any, args: tuple[object, ...], stream: object | None, against: Callable[..., Any] | None = None) -> DebugReport:
    """Implements :meth:`mlafix.Kernel.debug`; `kernel` is a mlafix.Kernel."""
    described = kernel.signature["args"]
    if reads_ranks(described):
        names = ", ".join(arg["name"] for arg in described if arg["kind"] == "peers")
        raise ArgumentError(f'kernel "{kernel.name}": expected no Peers arguments, whose rows debug() cannot follow, got {names}')
    arrays = {
        arg["name"]: make_array(arg, value)
        for arg, value in zip(described, args)
        if arg["kind"] == "list" or (arg["kind"] == "tensor" and value is not None)
    }
    call = _Call(kernel, described, args, arrays)
    bound = kernel._bound_by(args)
    proofs = kernel.report(**bound)["args"]
    expected = {} if against is None else _expected(against, call)
    followed = _follow(call, bound, {arg["name"] for arg in proofs if arg.get("by_element")}, expected)
    faults = [Fault(found["question"], found["argument"], tuple(found["element"]), tuple(found["row"]), **_place(found))
              for found in followed["faults"]]  # fmt: skip
    uncovered = {fault.argument for fault in faults if fault.question == "coverage"}
    unwritten, different, refused = [], [], ""
    try:
        unwritten = list(_unwritten(call, stream))
        different = list(_different(call, expected, stream)) if expected else []
    except CompileError as error:
        if not faults and not _is_doubtful(proofs):
            raise
        refused = error.message
    except ArgumentError:
        if not faults:
            raise
        # The faults explain the error, so it is not raised.
    # A row that reads the previous contents of an output may store them again. _unwritten() takes such elements for
    # unwritten, so the faults that it yields for such an output are dropped.
    uncovered |= {fault.argument for fault in faults if fault.question in _READS}
    counts = {fault.argument: fault for fault in unwritten}
    faults = [counts.get(fault.argument, fault) if fault.question == "coverage" else fault for fault in faults]
    faults += [fault for fault in unwritten if fault.argument not in uncovered]
    # Rows are followed with one tolerance, the largest of all outputs. _different has a tolerance for each output.
    explained = {fault.argument for fault in faults if fault.question == "reference"}
    faults += [fault for fault in different if fault.argument not in explained]
    printed = tuple(Printed(tuple(text["row"]), text["text"], **_place(text)) for text in followed["printed"])
    for text in printed:
        print(text)
    if followed["printed_more"]:
        print(f"and {followed['printed_more']} more texts")
    return DebugReport(tuple(faults), followed["unknown_rows"], followed["is_whole"], printed, followed["printed_more"], refused)


def _is_doubtful(proofs: Sequence[dict[str, Any]]) -> bool:
    """True if an answer is neither proved nor promised, or an access is guarded, so that the compiler may refuse the kernel
    (docs/Proofs.md)."""
    verdicts = {answer["verdict"] for arg in proofs for answer in arg["answers"]}
    return not verdicts <= {"proved", "promised"} or any(arg.get("guarded") for arg in proofs)


def _place(described: dict[str, Any]) -> dict[str, Any]:
    place = {name: described[name] for name in ("file", "line", "column") if name in described}
    return {**place, "message": diagnostics.in_python(described.get("message", ""), place.get("file", ""))}


# -- Following the rows ----------------------------------------------------------------------------------------------


def _follow(call: _Call, bound: dict[str, str], by_element: set[str], expected: dict[str, DebugArray]) -> dict[str, Any]:
    """Follows the rows of this launch on the host and returns the compiler's findings.

    Args:
        bound: the bindings of the call: {"D": "128"}.
        by_element: the names of the tensors that rows read element by element.
        expected: the expected contents of outputs, by name; {} without a reference.
    """
    launch: dict[str, object] = {}
    for arg, value in zip(call.described, call.args):
        name = arg["name"]
        if name not in call.arrays:
            launch[name] = value if value is None else number_of(value)
            continue
        array = call.arrays[name]
        launch[name] = {"sizes": array.sizes}
        wanted = name in by_element or arg["dtype"] in INTEGERS
        is_read = arg.get("access") != "write" and arg["kind"] == "tensor" and array.per_item == 1 and math.prod(array.sizes) <= _MOST_ROW_ELEMENTS
        if is_read or (wanted and math.prod(array.sizes) <= _MOST_ELEMENTS):
            launch[name] = {"sizes": array.sizes, "elements": array.elements()}
    if expected:
        launch["against the reference"] = {
            **{name: array.elements() for name, array in expected.items()},
            "the tolerance": max(_TOLERANCES.get(array.arg["dtype"], 1e-4) for array in expected.values()),
        }
    found: dict[str, Any] = json.loads(call.kernel._emit("faults", [], bound, launch=json.dumps(launch, allow_nan=False)))
    return found


# -- Comparing outputs with a reference ------------------------------------------------------------------------------


def _expected(against: Callable[..., Any], call: _Call) -> dict[str, DebugArray]:
    """Calls the reference function `against` with copies of the outputs that have float elements. Returns, by name, the
    outputs that the function returns or has written."""
    written = {name: call.arrays[name].copy() for name in call.outputs("write", "update") if call.arrays[name].arg["dtype"] not in INTEGERS}
    result = against(*call.given(written))
    if result is None:
        return written
    results = result if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(written):
        raise ArgumentError(f"against: expected {len(written)} results, one for each output, or None, got {len(results)}")
    made = {name: make_array(array.arg, value) for (name, array), value in zip(written.items(), results)}
    for name, array in made.items():
        if array.sizes != call.arrays[name].sizes:
            raise ArgumentError(f'against: expected shape {call.arrays[name].sizes} for "{name}", got {array.sizes}')
    return made


def _different(call: _Call, expected: dict[str, DebugArray], stream: object | None) -> Iterator[Fault]:
    """Launches the kernel into copies of its outputs and compares them with the reference. Yields a fault for the first
    element of each output that differs."""
    passed = {name: call.arrays[name].copy() for name in call.outputs("write", "update")}
    call.kernel._dispatch(call.given(passed), stream)
    for name, want in expected.items():
        tolerance = _TOLERANCES.get(want.arg["dtype"], 1e-4)
        for at, (got, right) in enumerate(zip(passed[name].elements(), want.elements())):
            a, b = float(got), float(right)  # type: ignore[arg-type]
            if a == b or (math.isnan(a) and math.isnan(b)) or (math.isfinite(b) and abs(a - b) <= tolerance * max(1.0, abs(b))):
                continue
            element = []
            for size in reversed(want.sizes):
                at, index = divmod(at, size)
                element.insert(0, index)
            yield Fault("reference", name, tuple(element), message=f"{name}{element}: {a:.7g}, where the reference has {b:.7g}")
            break


# -- Finding elements that no row writes -----------------------------------------------------------------------------


def _unwritten(call: _Call, stream: object | None) -> Iterator[Fault]:
    """Launches the kernel twice, into outputs with different initial contents. Yields a fault for each output with
    elements that both launches leave unchanged."""
    results: list[dict[str, DebugArray]] = []
    for which in (0, 1):
        passed = {name: call.arrays[name].poisoned(which) for name in call.outputs("write")}
        passed |= {name: call.arrays[name].copy() for name in call.outputs("update")}
        call.kernel._dispatch(call.given(passed), stream)
        results.append(passed)
    for name in call.outputs("write"):
        first, second = (result[name] for result in results)
        left = first.is_poison(0) & second.is_poison(1)
        if left.any():
            first_one = tuple(int(indices[0]) for indices in left.nonzero())
            count = int(left.sum())
            if first.per_item > 1:  # the mask has one item for each byte
                first_one = (*first_one[:-1], first.per_item * first_one[-1])
                count *= first.per_item
            many = f" ({count} elements in all)" if count > 1 else ""
            message = f"{name}[{', '.join(map(str, first_one))}]: no row writes it{many}"
            yield Fault("coverage", name, first_one, count=count, message=message)
