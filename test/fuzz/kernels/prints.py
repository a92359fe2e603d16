"""Compares the texts that rows print in debug mode with the expected ones."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
from floats import Floats
from integers import Bools
from interpret import Interpreter

# The relative error that printed floats may have beyond the interpreter's bounds. Debug mode computes functions as
# constant folding does, not as compiled kernels do.
_ERROR = 1e-5
_BOOLS = {"true": 1, "false": 0, "True": 1, "False": 0, "1": 1, "-1": 1, "0": 0}


def compare(interpreter: Interpreter, report: Any) -> str:
    """Describes the texts of the first row that prints other texts than expected. Returns "" if there is no such row,
    or if the report does not have all texts. `report` is a mlafix.DebugReport."""
    if report.printed_more or not report.is_whole:
        return ""
    found: dict[tuple[int, ...], list[str]] = collections.defaultdict(list)
    for printed in report.printed:
        found[printed.row].append(printed.text)
    for row, index in enumerate(np.array(interpreter.indices).T):
        executions = [text for text in interpreter.printed if text.perhaps[row]]
        if interpreter.dead[row] or any(not text.surely[row] for text in executions):
            continue
        got = found[tuple(int(i) for i in index)]
        if len(got) != len(executions) and not (report.unknown_rows and len(got) < len(executions)):
            return f"row {list(index)} prints {got}, expected {len(executions)} texts"
        for text, execution in zip(got, executions):
            before, _, values = text, "", text[len(execution.text) + 1 :].split(" ")
            if not before.startswith(execution.text) or len(values) != len(execution.values) or not all(map(lambda t, v: _may_be(t, v, row), values, execution.values)):
                return f"row {list(index)} prints {text!r}, expected {execution.text!r} and {[_words(value, row) for value in execution.values]}"
    return ""


def _may_be(text: str, value: Any, row: int) -> bool:
    if text == "?":
        return True
    if not isinstance(value, Floats):
        unknown = value.unknown is not None and value.unknown[row]
        return bool(unknown) or (_BOOLS.get(text) if isinstance(value, Bools) else int(text)) == int(value.v[row])
    low, high, nan = (part[row] for part in value.bounds())
    number = float(text)
    if math.isnan(number):
        return bool(nan) or low > high
    slack = _ERROR * abs(number) + 2.0**-149 if math.isfinite(number) else 0
    return bool(low - slack <= number <= high + slack)


def _words(value: Any, row: int) -> str:
    if not isinstance(value, Floats):
        return "anything" if value.unknown is not None and value.unknown[row] else str(value.v[row])
    low, high, nan = (part[row] for part in value.bounds())
    return f"{low} .. {high}{' or nan' if nan else ''}"
