"""Implements ``python -m mlafix check``: compile errors, proofs and warnings of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._launcher.kernel import Kernel
from ..errors import CompileError

_PLACE = ("file", "line", "column")


def check(kernel: Kernel, bindings: Mapping[str, str], target: str | None = None) -> dict[str, Any]:
    """Checks one kernel: its errors, its warnings and the proofs about it. Launches nothing, and needs no assembler.

    Args:
        kernel: a kernel of a Python file, of a file in MLIR's syntax, or of the library.
        bindings: values of the kernel's names; {} checks the kernel for all values.
        target: "sm_90", "x86-64-v3": also generates code for this target, for which all names must be bound. None
            generates no code.

    Returns:
        {"kernel", "errors", "warnings", "args"}, ready for JSON. An error or a warning is {"message"}, with its "file", "line"
        and "column" if they are known. "args" is the same as in `Kernel.report`, or [] if the kernel does not compile.
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
    """Returns an error as a dict: its place if known, and its message without the place and the source line."""
    head = error.message.split("\n", 1)[0]
    place = {"file": error.file, "line": error.line, "column": error.column}
    return {"message": head.partition(": error: ")[2] or head, **{key: value for key, value in place.items() if value}}


def as_text(found: Mapping[str, Any]) -> str:
    """Formats the result of `check`. The first line names the kernel and counts its proved answers. Each error and
    warning follows with its place."""
    answers = [answer for arg in found["args"] for answer in arg["answers"]]
    proved = sum(answer["verdict"] in ("proved", "promised") for answer in answers)
    counts = f"{proved} of {len(answers)} questions proved" if answers else "not proved, since it does not compile"
    lines = [f'kernel "{found["kernel"]}": {len(found["errors"])} errors, {len(found["warnings"])} warnings, {counts}']
    for kind in ("error", "warning"):
        for fault in found[f"{kind}s"]:
            place = ":".join(str(fault[key]) for key in _PLACE if key in fault)
            lines.append(f"{place}: {kind}: {fault['message']}".lstrip(": "))
    return "\n".join(lines)
