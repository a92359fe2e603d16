"""Collects the facts on the page, either all of them from the compiler, or those that a unit's file contains."""

from __future__ import annotations

import io
import json
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._files import toolchain
from .._launcher import manifest
from .._launcher.kernel import Kernel
from .._reports.remarks import Remark, find_main, parse
from ..errors import ArgumentError, CompileError, UnitError
from .lines import Line, located_file, mlir_lines, ptx_lines, source_lines


@dataclass
class Facts:
    """The facts on a page about one specialisation of a kernel for one target."""

    kernel: str
    target: str
    bindings: dict[str, Any]
    args: list[dict[str, Any]]
    """The arguments in the form of docs/UnitFormat.md."""
    versions: list[dict[str, Any]]
    """The code versions as the unit's manifest describes them."""
    aliases: list[list[int]] = field(default_factory=list)
    file: str = ""
    """The name of the source file; "" if the source is unknown."""
    source: list[Line] = field(default_factory=list)
    stages: dict[str, list[Line]] = field(default_factory=dict)
    """The lines of each of the compiler's stages by the stage's name, from the mlafix dialect to PTX or the LLVM
    dialect."""
    canonical: list[Line] = field(default_factory=list)
    """The lines of the stage "mlafix dialect", in which `find_accesses` finds loads and stores; empty if unknown."""
    proofs: dict[str, Any] = field(default_factory=dict)
    """The output of ``--emit=report``, or the part of it that the unit contains; empty if it is unknown."""
    chip: dict[str, int] = field(default_factory=dict)
    """Published numbers of a chip of the target: "multiprocessors", and "bandwidth" in GB/s; empty if the chip is
    unknown."""
    remarks: list[Remark] = field(default_factory=list)
    """The compiler's remarks about the kernel and its code versions; empty for a unit."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each fact that is unknown, with the reason."""

    @property
    def main(self) -> dict[str, Any]:
        """The code version of large calls: the first one that is not limited to short or few rows."""
        entry = find_main([version["entry"] for version in self.versions])
        return next((version for version in self.versions if version["entry"] == entry), self.versions[0])


def facts_of_kernel(kernel: Kernel, bindings: Mapping[str, str], target: str) -> Facts:
    """Collects all facts by compiling the source of a kernel.

    Raises:
        CompileError: the kernel does not compile with these bindings for this target.
    """

    def emit(what: str, targets: Sequence[str] = (), **options: Any) -> Any:
        return kernel._emit(what, targets, bindings, **options)

    on_gpu = target.startswith("sm_")
    facts = _of_manifest(emit("unit", [target]), kernel.name, {}, target)
    canonical = emit("canonical", line_info=True)
    facts.file = located_file(canonical)
    linecache.checkcache(facts.file)
    facts.source = source_lines("".join(linecache.getlines(facts.file)))  # linecache also has the cells of notebooks
    if not facts.source:
        facts.notes.append(f"The source, {facts.file or kernel.name}, is not at hand.")
    facts.canonical = mlir_lines(canonical, facts.file)
    facts.stages = {
        "mlafix dialect": facts.canonical,
        "rows and scalars": mlir_lines(emit("lowered", line_info=True), facts.file),
        "one thread's program": mlir_lines(emit("distributed", [target], line_info=True), facts.file),
    }
    if on_gpu:
        facts.stages["PTX"] = ptx_lines(emit("ptx", [target], line_info=True), facts.file)
    else:
        facts.stages["one row's program"] = facts.stages.pop("one thread's program")
        facts.stages["LLVM dialect"] = mlir_lines(emit("mlir", [target], line_info=True), facts.file)
    facts.proofs = json.loads(emit("report"))
    facts.remarks, _ = parse(kernel._remark_messages(target, bindings))
    return facts


def facts_of_unit(path: Path, name: str, bindings: Mapping[str, str], target: str) -> Facts:
    """Collects the facts in a unit's file: arguments, code versions and PTX of a kernel.

    Args:
        path: the file.
        name: the kernel's name; may be empty if the unit has one kernel.
        bindings: bindings that choose one of several specialisations of the kernel; else empty.
        target: a target for which the kernel has code.

    Raises:
        UnitError: the file is not a unit.
        ArgumentError: the unit has no such kernel, or no code for the target.
    """
    try:
        facts = _of_manifest(path.read_bytes(), name, bindings, target)
    except UnitError as error:
        raise UnitError(f"{path}: {error}") from None
    facts.notes.append(f"{path.name} is a unit: it does not hold the kernel's source.")
    return facts


def _chosen(data: bytes, name: str, bindings: Mapping[str, str]) -> dict[str, Any]:
    """Returns the only kernel of a unit with this name and these bindings. The name "" fits every kernel. Raises
    UnitError if the bytes are not a unit, and ArgumentError unless exactly one kernel fits."""
    text = manifest.text_of(io.BytesIO(data))
    if not text:
        raise UnitError("expected a unit, which begins with MLAFIX, got something else")
    kernels = json.loads(text)["kernels"]
    fitting = [
        kernel
        for kernel in kernels
        if (not name or kernel["name"] == name)
        and all(str(kernel["bindings"].get(key)) == value for key, value in bindings.items())
    ]
    if len(fitting) != 1:
        held = " and ".join(f"{kernel['name']} for {_spell(kernel['bindings'])}" for kernel in kernels)
        got = f"{len(fitting)} that fit" if fitting else "none that fits"
        raise ArgumentError(f"expected UNIT.mlafix:KERNEL and --bind to choose one kernel of the unit, which holds {held}; got {got}")
    chosen: dict[str, Any] = fitting[0]
    return chosen


def _of_manifest(data: bytes, name: str, bindings: Mapping[str, str], target: str) -> Facts:
    kernel = _chosen(data, name, bindings)
    codes = {code["target"]: code for code in kernel["code"]}
    if target not in codes:
        raise ArgumentError(f'--target: expected one of {", ".join(codes)}, got "{target}"')
    code = codes[target]
    facts = Facts(kernel["name"], target, kernel["bindings"], kernel["args"], code["variants"], kernel["aliases"])
    for proof in kernel.get("proofs", []):
        answers = facts.proofs.setdefault("args", [])
        name = facts.args[proof["arg"]]["name"]
        if not answers or answers[-1]["name"] != name:
            answers.append({"name": name, "answers": []})
        answers[-1]["answers"].append(proof)
    for image in code["images"]:
        if image["format"] == "ptx":
            text = data[image["offset"] : image["offset"] + image["size"]].rstrip(b"\0").decode()
            facts.stages["PTX"] = ptx_lines(text, "")
    try:
        facts.chip = toolchain.compiler().chip(target)
    except CompileError:
        facts.notes.append("No compiler is installed here: the target's multiprocessors and bandwidth are unknown.")
    return facts


def _spell(bindings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(bindings.items())) or "no bindings"
