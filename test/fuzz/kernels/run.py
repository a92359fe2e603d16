"""Compiles and runs a case, and compares the results with those of the interpreter."""

from __future__ import annotations

import contextlib
import dataclasses
import linecache
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import mlafix
import numpy as np
import peers
import prints
from arena import Arena, View, arguments
from contents import contents
from interpret import Interpreter, Invalid
from memory import Cells, cells_of
from mlafix._runtime import PeerGroup, PeerTensors
from render import source
from syntax import Call, Case, Kernel, Tensor, names_of

sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "rows"))
import refused  # noqa: E402

_MOST_SHOWN = 4
# The target for kernels that CPUs do not support: they are compiled for it, but not run.
_ANY_GPU = "sm_90"
# Refusals that docs/Limits.md allows: rows that are too long, or too many at once.
_LIMITS = re.compile("error: expected (rows of at most|at most .* bytes of rows)")
# Warnings about races. No kernel on a dense grid may get one, since its rows write different elements.
_RACES = re.compile("(expected one row to write|expected the rows of)(?!.*too many cases)")


@dataclasses.dataclass
class Outcome:
    """The outcome of a case.

    Args:
        kind: "ok", "wrong" (a result is out of bounds), "error" (an unexpected exception), "limit" (an exception that
            docs/Limits.md allows), "invalid" (a fault of the generator). The caller sets "crash" and "hang".
        message: the description of the failure.
        seconds: the time of the slowest call, which includes compiling. If no call was made, the time of compiling.
        refused: the number of aliased calls that the runtime refused.
        vague: the number of written elements that may be anything.
        written: the number of elements that rows surely or possibly wrote.
        call: the number of the last call.
    """

    kind: str
    message: str = ""
    seconds: float = 0.0
    refused: int = 0
    vague: int = 0
    written: int = 0
    call: int = 0


class Device:
    """The CPU, with numpy arrays."""

    may_reverse = True

    def begin(self, buffer: np.ndarray) -> None:
        self.buffer = buffer.copy()

    def view(self, view: View) -> Any:
        return view.of(self.buffer)

    may_exchange = False

    def of_ranks(self, tensor: Tensor, array: Any, turn: int) -> Any:
        """Makes the argument of a call from `array`, which holds the tensors of all ranks. A tensor to which ranks
        store stays one array on CPUs (`without_ranks`). `turn` is 0 or 1."""
        return array if tensor.access == "InOut" else list(array)

    def end(self) -> np.ndarray:
        return self.buffer


class TorchDevice(Device):
    """A GPU ("cuda:0") or the CPU ("torch"), with torch tensors."""

    may_reverse = False

    def __init__(self, where: str) -> None:
        import torch

        self.torch, self.where = torch, "cpu" if where == "torch" else where
        self.group: PeerGroup | None = None
        self.may_exchange = self.where != "cpu"
        self.types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f8e4m3fn": torch.float8_e4m3fn,
                      "f8e5m2": torch.float8_e5m2, "f8e8m0": torch.float8_e8m0fnu, "i32": torch.int32, "i64": torch.int64, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}  # fmt: skip

    def begin(self, buffer: np.ndarray) -> None:
        self.group = None
        self.raw = self.torch.from_numpy(buffer.copy()).to(self.where)

    def view(self, view: View) -> Any:
        typed = self.raw.view(self.types[view.dtype])
        return typed.as_strided(view.shape, view.strides, view.offset // typed.element_size())

    def of_ranks(self, tensor: Tensor, array: Any, turn: int) -> Any:
        if self.where == "cpu":
            return super().of_ranks(tensor, array, turn)
        if self.group is None:
            workspaces = np.zeros((len(array), peers.words_of(len(array))), np.int64)
            peers.fill(workspaces, turn)
            self.workspaces = self.torch.from_numpy(workspaces).to(self.where)
            self.group = peers.group_of([one.data_ptr() for one in self.workspaces])
        return PeerTensors(list(array), self.group)

    def end(self) -> np.ndarray:
        if self.where != "cpu":
            self.torch.cuda.synchronize()
        found: np.ndarray = self.raw.cpu().numpy()
        return found


def device(where: str) -> Device:
    if where == "ptx":
        from ptx_device import PtxDevice

        return PtxDevice()
    return Device() if where == "cpu" else TorchDevice(where)


def load(text: str, folder: Path) -> mlafix.Kernel:
    """Loads the kernel from the text of a module. Writes the text to a file, since kernels are read from files."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=folder, delete=False) as file:
        file.write(text)
    path = Path(file.name)
    try:
        namespace: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
        exec(compile(text, str(path), "exec"), namespace)
        kernel: mlafix.Kernel = namespace["k"]
        kernel.source  # noqa: B018 (reads the file)
        return kernel
    finally:
        path.unlink()
        linecache.cache.pop(str(path), None)


def without_ranks(text: str, turn: int) -> str:
    """Rewrites a kernel for CPUs: one tensor replaces the tensors of the ranks that store to each other."""
    text = text.replace("        exchange()\n", "").replace("turn()", f"index({turn})")
    text = re.sub(r"Peers\[InOut\[(\w+), \"", r'InOut[\1, "ranks ', text)
    text = re.sub(r'(InOut\[\w+, "ranks [^"]*"\])\]', r"\1", text)
    text = re.sub(r"(sent\w*\[\w+)\]\[", r"\1, ", text)
    return re.sub(r"ranks\((sent\w*)\)", r"\1.shape[0]", text)


def expected(kernel: Kernel, call: Call, made: dict[str, np.ndarray]) -> tuple[dict[str, Cells], Interpreter]:
    """Interprets the call. Returns the cells of each tensor after the call, and the interpreter, which has the printed
    texts. Raises Invalid if a loop has too many iterations."""
    cells = cells_of(kernel, call, made)
    interpreter = Interpreter(kernel, call, cells)
    interpreter.run()
    return cells, interpreter


def compare(cells: dict[str, Cells], arena: Arena, before: np.ndarray, after: np.ndarray) -> str:
    """Describes the wrong bytes of the buffer after a call. Returns "" if there are none."""
    lines: list[str] = []
    rest = after.copy()
    for name, view in arena.views.items():
        found, got = cells[name], view.get(after)
        wrong = found.wrong(got)
        for position in np.argwhere(wrong)[:_MOST_SHOWN]:
            at = tuple(int(i) for i in position)
            lines.append(f"{name}{list(at)}: expected {found.expected(at)}, got {got[at]!r}")
        if wrong.any():
            lines.append(f"{name}: {int(wrong.sum())} of {wrong.size} elements ({view.elements})")
        view.restore(rest, before, found.touched)
    if not lines and not np.array_equal(rest, before):
        lines.append(f"bytes outside of all tensors changed, from {int(np.flatnonzero(rest != before)[0])} on")
    return "\n".join(lines)


def bindings(kernel: Kernel, call: Call) -> dict[str, object]:
    """Returns the bindings that follow from a call's arguments, so that the kernel can be compiled before the call."""
    given = [tensor for tensor in kernel.tensors if tensor.name not in call.absent]
    dims = {name for tensor in given for dim in tensor.dims for name in names_of(dim)}
    found: dict[str, object] = {dim: size for dim, size in call.sizes.items() if dim in dims and dim[0].isupper()}
    used = {tensor.dtype for tensor in given}
    found |= {variable: dtype for variable, dtype in call.dtypes.items() if variable in used}
    found |= {tensor.name: "absent" if tensor.name in call.absent else "present" for tensor in kernel.tensors if tensor.optional}
    return found


def known(kernel: mlafix.Kernel, bases: dict[str, str]) -> dict[str, str]:
    """Returns those of `bases` that the compiled kernel has. The kernel lacks a base that only skipped branches use. If
    it lacks another base by mistake, the default of the base applies, so the comparison of the results fails."""
    return {name: base for name, base in bases.items() if name in kernel.signature["names"]}


class Runner:
    """Runs cases on one device.

    Args:
        where: "cpu", "torch", "ptx" or "cuda:0".
        text_rate: one of this many cases also runs from its text in MLIR's syntax; 0: none does.
        target: only compile, for this target or for several comma-separated ones.
        calls: the most calls of a case that are made. If a case has more calls, its number decides which are made.
    """

    def __init__(self, where: str, text_rate: int, folder: Path, target: str = "", calls: int = 4) -> None:
        self.calls = calls
        self.watches = where in ("cpu", "torch")
        self.device, self.text_rate, self.folder, self.target = device(where), text_rate, folder, target

    def run(self, case: Case, text: str = "", number: int = 0) -> Outcome:
        """Runs a case. If `text` is not empty, this source is compiled in place of the case's kernel."""
        with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            outcome = self._run(case, text, number)
        races = [str(one.message) for one in given if issubclass(one.category, mlafix.CompileWarning) and _RACES.search(str(one.message))]
        if outcome.kind == "ok" and races and not case.kernel.grid.segments:
            outcome.kind, outcome.message = "error", f"CompileWarning: {races[0]}"
        return outcome

    def _run(self, case: Case, text: str, number: int) -> Outcome:
        outcome = Outcome("ok")
        begin = time.perf_counter()
        try:
            text = text or source(case.kernel)
            kernel = load(text, self.folder)
            is_alone = case.kernel.exchanges and not self.device.may_exchange
            if self.target or is_alone:
                names = {**bindings(case.kernel, case.calls[0]), **known(kernel, case.calls[0].bases)}
                for target in (self.target or _ANY_GPU).split(","):
                    outcome.message += self._compile(kernel, target, names)
                outcome.seconds = time.perf_counter() - begin
                if outcome.message:
                    outcome.kind = "wrong"
                    return outcome
            if self.target:
                return outcome
            if is_alone:
                kernel = load(without_ranks(text, case.calls[0].turn), self.folder)
            twin = self._from_text(kernel) if self.text_rate and number % self.text_rate == 0 else None
            for outcome.call, call in self._some(list(enumerate(case.calls)), number):
                wrong = self._call(case.kernel, call, kernel, twin, outcome)
                if wrong:
                    outcome.kind, outcome.message = "wrong", wrong
                    break
        except Invalid as problem:
            outcome.kind, outcome.message = "invalid", str(problem)
        except (mlafix.CompileError, mlafix.ArgumentError, mlafix.UnitError, mlafix.DriverError) as error:
            outcome.kind, outcome.message = "limit" if _LIMITS.search(str(error)) else "error", f"{type(error).__name__}: {error}"
            outcome.seconds = outcome.seconds or time.perf_counter() - begin
        return outcome

    def _some(self, calls: list[tuple[int, Call]], number: int) -> list[tuple[int, Call]]:
        first = number % len(calls)
        return calls if self.calls >= len(calls) else (calls[first:] + calls[:first])[: self.calls]

    def _compile(self, kernel: mlafix.Kernel, target: str, names: dict[str, object]) -> str:
        """Compiles the kernel for a target. Returns the instructions in the code that GPUs refuse, or "" if there are
        none."""
        path = self.folder / "unit.mlafix"
        kernel.save(path, [target], **names)
        return "".join(f"{target}: {found}\n" for found in refused.search(path.read_bytes()))

    def _from_text(self, kernel: mlafix.Kernel) -> mlafix.Kernel:
        path = self.folder / "text.mlir"
        path.write_text(kernel.source, encoding="utf-8")
        return mlafix.Kernel.load(path)

    def _call(self, made: Kernel, call: Call, kernel: mlafix.Kernel, twin: mlafix.Kernel | None, outcome: Outcome) -> str:
        fixed = {**known(kernel, call.bases), **{dim: call.sizes[dim] for dim in call.bound if dim in call.sizes}}
        arena = Arena(made, call, self.device.may_reverse)
        data = contents(made, call)
        cells, interpreter = expected(made, call, data)
        before = arena.fill(data, call.seed)
        begin = time.perf_counter()
        try:
            fixed_kernel = kernel.specialize(**fixed) if fixed else kernel
            after = self._launch(fixed_kernel, made, call, arena, before)
        except mlafix.ArgumentError:
            if not call.aliases:
                raise
            outcome.refused += 1
            apart = dataclasses.replace(call, aliases={})
            return self._call(made, apart, kernel, twin, outcome)
        outcome.seconds = max(outcome.seconds, time.perf_counter() - begin)
        for found in cells.values():
            if hasattr(found, "lo"):
                outcome.vague += int((found.touched & np.isinf(found.lo) & np.isinf(found.hi) & (found.lo < found.hi)).sum())
            else:
                outcome.vague += int((found.touched & found.unknown).sum())
            outcome.written += int(found.touched.sum())
        wrong = compare(cells, arena, before, after)
        if not wrong and interpreter.printed and self.watches and not any(tensor.of_ranks for tensor in made.tensors):
            wrong = self._watch(fixed_kernel, made, call, arena, before, interpreter)
        if not wrong and twin is not None:
            again = self._launch(twin.specialize(**fixed) if fixed else twin, made, call, arena, before)
            if not np.array_equal(again, after):
                wrong = "the kernel's text in MLIR's syntax gives other bytes"
        return wrong

    def _watch(self, kernel: mlafix.Kernel, made: Kernel, call: Call, arena: Arena, before: np.ndarray, interpreter: Interpreter) -> str:
        """Describes what is wrong with the findings and prints of debug mode. Returns "" if nothing is. Findings about
        accesses out of bounds, NaN and infinities do not count, since cases contain these on purpose."""
        self.device.begin(before)
        with contextlib.redirect_stdout(None):
            report = kernel.debug(*arguments(arena, made, call, self.device.view, lambda tensor, array: list(array)))
        faults = [str(fault) for fault in report.faults if fault.question not in ("bounds", "NaN", "infinity")]
        return faults[0] if faults else prints.compare(interpreter, report)

    def _launch(self, kernel: mlafix.Kernel, made: Kernel, call: Call, arena: Arena, before: np.ndarray) -> np.ndarray:
        self.device.begin(before)
        kernel(*arguments(arena, made, call, self.device.view, lambda tensor, array: self.device.of_ranks(tensor, array, call.turn)))
        return self.device.end()
