"""Implements ``python -m mlafix check``: compile errors, proofs and warnings of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._launcher.kernel import Kernel
from ..errors import CompileError

_PLACE = ("file", "line", "column")


def check(kernel: Kernel, bindings: Mapping[str, str], target: str | None = None) -> dict[str, Any]:
    """The faults of one kernel, and the proofs about it. Nothing is launched, and no assembler is needed.

    Args:
        kernel: one of a Python file, of a file of MLIR or of the library.
        bindings: values of its names; {} asks of the kernel as it is written, for all of them.
        target: also generate code for it ("sm_90", "x86-64-v3"), which needs all names bound.

    Returns:
        {"kernel", "errors", "warnings", "args"}, ready for JSON. An error or a warning is {"message"} with its "file", "line" and
        "column" where they are known; "args" are those of `Kernel.report`, and [] where the kernel does not compile.
    """
    found: dict[str, Any] = {"kernel": kernel.name, "errors": [], "warnings": [], "args": []}
    try:
        report = kernel.report(**bindings)
        found["args"] = report["args"]
        found["warnings"] = [{key: warning[key] for key in ("message", *_PLACE) if key in warning} for warning in report["warnings"]]
        if target is not None:
            kernel.ir("llvm", target, **bindings)
    except CompileError as error:
        found["errors"] = [_described(error)]
    return found


def _described(error: CompileError) -> dict[str, Any]:
    """An error's message, without the place and the line of the source that its text has, and its place."""
    head = error.message.split("\n", 1)[0]
    place = {"file": error.file, "line": error.line, "column": error.column}
    return {"message": head.partition(": error: ")[2] or head, **{key: value for key, value in place.items() if value}}


def as_text(found: Mapping[str, Any]) -> str:
    """The result of `check` in lines: the kernel with its count of proved answers, then each error and each warning at its place."""
    answers = [answer for arg in found["args"] for answer in arg["answers"]]
    proved = sum(answer["verdict"] in ("proved", "promised") for answer in answers)
    counts = f"{proved} of {len(answers)} questions proved" if answers else "not proved, since it does not compile"
    lines = [f'kernel "{found["kernel"]}": {len(found["errors"])} errors, {len(found["warnings"])} warnings, {counts}']
    for kind in ("error", "warning"):
        for fault in found[f"{kind}s"]:
            place = ":".join(str(fault[key]) for key in _PLACE if key in fault)
            lines.append(f"{place}: {kind}: {fault['message']}".lstrip(": "))
    return "\n".join(lines)
