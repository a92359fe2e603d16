"""Kernels of the language: inspecting, compiling and calling them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _env, _runtime, cache
from .._debug import debug as _debug
from .._debug import repro
from .._debug.debug import DebugReport
from .._files import disk, toolchain
from .._forks import cached_property
from .._reports import diagnostics
from .._reports import remarks as _remarks
from .._reports.proofs import Report
from ..errors import ArgumentError, CompileError, DebugWarning
from .frames import without_frames
from .launcher import Launcher, text_of

# The stages of compilation in order. The last stage in MLIR has two names: "nvvm" for a GPU, "cpu" for a CPU. The
# compiler calls it "mlir".
_WITHOUT_TARGET = ("source", "specialized", "canonical", "lowered")
STAGES = (*_WITHOUT_TARGET, "layout", "distributed", "nvvm", "cpu", "llvm", "ptx")

Bindings = Mapping[str, object]


class Kernel(Launcher):
    """A kernel: made by ``@mlafix.kernel``, or read from a file in MLIR's syntax (:meth:`load`).

    A call with arguments, in order or by name, compiles the kernel for them if necessary and launches it: on the CPU
    for CPU arrays, on the current stream for CUDA tensors. On a GPU, the call returns before the kernel has finished.
    Optional tensors may be None, or omitted at the end or by name; the kernel is then compiled without them.

    Args:
        name: the kernel's name in the source.
        source: text in MLIR's syntax, or a function that makes it.
        file: the name of the source in messages.
        fixed: names that are bound already; see :meth:`specialize`.
    """

    def __init__(
        self, name: str, source: str | Callable[[], str], file: str = "", fixed: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, {**(fixed or {})})
        self.file = file or f"<{name}>"
        self._source = source

    @classmethod
    def load(cls, path: str | Path, name: str = "") -> Kernel:
        """Loads a kernel from a file in MLIR's syntax.

        Args:
            path: the path of the file.
            name: the kernel's name; may be omitted if the file has a single kernel.

        Raises:
            CompileError: the file is not valid MLIR, or has no kernel, or has several but `name` is omitted.
            OSError: the file cannot be read.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
            signature = json.loads(toolchain.compiler().signature(text, str(path), name))
        except UnicodeDecodeError as error:
            message = f"{path}: expected text in UTF-8, got byte 0x{error.object[error.start]:02x} at offset {error.start}"
            raise CompileError(message, str(path)) from None
        except CompileError as error:
            if error._kind != "several kernels":
                raise
            how = f'name="…" chooses one, {path}:NAME on a command line'
            raise CompileError(f"expected a file with one kernel, got {error._subject} ({how})", str(path)) from None
        return cls(signature["name"], text, str(path))

    def __repr__(self) -> str:
        return f"<mlafix kernel {self.name}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return type(self), (self.name, self.source, self.file, self._fixed)

    # -- Inspecting the kernel ---------------------------------------------------------------------------------------

    @cached_property
    def source(self) -> str:
        """The kernel in MLIR's syntax, with its locations. Raises CompileError."""
        return self._source if isinstance(self._source, str) else self._source()

    @cached_property
    def _signature_text(self) -> str:  # type: ignore[override]
        text: str = toolchain.compiler().signature(self.source, self.file, self.name)
        return text

    @property
    def _identity(self) -> str:
        return f"{self.source} {sorted(self._fixed.items())}"

    @property
    def digest(self) -> str:
        """The digest that units of this kernel contain: the digest of the kernel's Python function, or "" if it has
        none. Raises CompileError."""
        return ""

    def bindings(self, bindings: Bindings) -> dict[str, str]:
        """Returns bindings in the compiler's spelling, together with the names that are bound already."""
        return {**self._fixed, **{name: text_of(value) for name, value in bindings.items()}}

    def _emit(self, emit: str, targets: Sequence[str], *choices: Bindings, **options: Any) -> Any:
        """Returns what the compiler emits for specialisations with these bindings. `options` replaces options of the
        compiler."""
        return toolchain.compiler().compile(
            self.source,
            self.file,
            kernel=self.name,
            specializations=[bound for choice in choices if (bound := self.bindings(choice))],
            targets=list(targets),
            emit=emit,
            **{"ptxas": _env.ptxas(), "digest": self.digest, "line_info": _env.line_info(), **options},
        )

    @without_frames
    def ir(self, stage: str = "canonical", target: str | None = None, **bindings: object) -> str:
        """Returns the kernel as text after a stage of compilation.

        Args:
            stage: source, specialized, canonical, lowered, layout, distributed, nvvm (or cpu), llvm or ptx. The first
                four need no target, and accept names without a binding.
            target: "sm_90", "x86-64-v3"; by default the target of this machine: of GPU 0, or of the CPU if there is no GPU.
            bindings: values of the kernel's names: ``H=128, D=128, T="bf16"``.

        Raises:
            ArgumentError: there is no such stage.
            CompileError: the kernel does not compile for this target with these bindings.
        """
        if stage not in STAGES:
            raise ArgumentError(f'argument "stage": expected one of {", ".join(STAGES)}, got {stage!r}')
        targets = [] if stage in _WITHOUT_TARGET else [_target(target)]
        text: str = self._emit("mlir" if stage in ("nvvm", "cpu") else stage, targets, bindings)
        return text

    def report(self, /, **bindings: object) -> Report:
        """Returns the compiler's proofs about the kernel (docs/Proofs.md). ``print(kernel.report())`` prints them as a
        table.

        Args:
            bindings: values of the kernel's names. Names that are not bound stay generic.

        Returns:
            A dict {"kernel", "microseconds", "args", "warnings"}. "args" has a dict {"name", "answers", "guarded"} for each
            tensor that the kernel reads or writes. An answer is {"question", "verdict", "microseconds"}. An answer that is not
            proved also has a "reason", and the "file", "line" and "column" of the access. "guarded" lists the accesses that
            are not proved to be in bounds, each with the "dim" that is checked at run time and its place. A warning has a
            "message" and its place. ``mlafix.Unit.load(path).kernel(name).report()`` returns the answers that a unit contains,
            without times and places.

        Raises:
            CompileError: the source is wrong.
        """
        return Report(json.loads(self._emit("report", [], bindings)))

    def _warn(self, bindings: Bindings) -> bool:
        """Issues the warnings of a kernel that is being compiled. Returns True if there are any."""
        fields = ("file", "line", "column", "end_line", "end_column")
        messages = [
            diagnostics.Message("warning", found["message"], *(found[field] for field in fields if field in found))
            for found in self.report(**bindings)["warnings"]
        ]
        diagnostics.warn(messages, self.source, self.file)
        return bool(messages)

    @without_frames
    def ptx(self, target: str, **bindings: object) -> str:
        """Returns the kernel's PTX for a GPU target ("sm_90"). Raises CompileError."""
        return self.ir("ptx", target, **bindings)

    def remarks(self, target: str | None = None, **bindings: object) -> str:
        """Returns the compiler's decisions for this kernel, and the reasons. Each remark names its line of the source.

        At most three remarks come first, marked "costs most": those that cost calls with the longest rows the most bytes.
        Remarks about the whole kernel follow, then remarks about each code version, in the order in which a call tries the
        versions. A remark that was printed for an earlier version is not repeated. "remark (matters)" marks an optimisation
        that the compiler did not make in a version that calls normally use. The last of several versions is not marked, since
        it only runs calls that all others refuse. ``kernel.explain_call(…)`` says which version a call runs.
        docs/Troubleshooting.md explains the names in brackets.

        Args:
            target: "sm_90", "x86-64-v3"; by default the target of this machine: of GPU 0, or of the CPU if there is no GPU.
            bindings: values of the kernel's names.

        Raises:
            CompileError: the kernel does not compile for this target with these bindings.
        """
        return _remarks.as_text(self._remark_messages(_target(target), bindings), self.source, self.file)

    def _remark_messages(self, target: str, bindings: Bindings) -> Any:
        return toolchain.compiler().remarks(
            self.source,
            self.file,
            kernel=self.name,
            bindings=self.bindings(bindings),
            target=target,
        )

    # -- Compiling the kernel ----------------------------------------------------------------------------------------

    @cached_property
    def variants(self) -> cache.Variants:
        """The compiled specialisations of the kernel, in memory and on disk."""
        return TextlessVariants(self)

    @without_frames
    def compile(self, target: str | None = None, **bindings: object) -> _runtime.Unit:
        """Returns the unit of one specialisation. Compiles it if the cache does not contain it.

        Args:
            target: "sm_90", "x86-64-v3"; by default the target of this machine: of GPU 0, or of the CPU if there is no GPU.
            bindings: values of the kernel's names.

        Raises:
            CompileError: the kernel does not compile for this target with these bindings.
            UnitError: compiling is necessary, but forbidden (MLAFIX_STRICT=1) or impossible without a compiler.
        """
        return self.variants.load(self.bindings(bindings), _target(target))

    @without_frames
    def save(
        self, path: str | Path, targets: str | Sequence[str], *choices: Mapping[str, object], **bindings: object
    ) -> None:
        """Compiles specialisations ahead and writes them to a unit file, which C and C++ programs can load as well.

        Args:
            path: the file.
            targets: one or several of the names that ``python -m mlafix compile --help`` lists: "sm_90", "x86-64-v3",
                "cpu" (every level of this machine's architecture).
            choices: bindings, one dict per specialisation: ``{"D": 64, "T": "f16"}, {"D": 128, "T": "f16"}``.
            bindings: values that all specialisations share.

        Raises:
            CompileError: the kernel does not compile for this target with these bindings.
            OSError: the file cannot be written.
        """
        variants = [self.bindings({**bindings, **choice}) for choice in choices or ({},)]
        data = self._emit("unit", _targets(targets), *variants)
        self._warn(variants[0])
        Path(path).write_bytes(bytes(data))

    # -- Calling the kernel ------------------------------------------------------------------------------------------

    def specialize(self, /, **bindings: object) -> Kernel:
        """Returns this kernel with further names bound. ``kernel.specialize(B=2)`` reads and writes lses in base 2.
        Binding a lower-case dim is an optimisation for calls with that size."""
        made = self._with(self.bindings(bindings))
        made.variants = self.variants  # shared by kernels of the same source
        return made

    def _with(self, fixed: dict[str, str]) -> Kernel:
        """Returns this kernel with exactly the names in `fixed` bound."""
        return type(self)(self.name, lambda: self.source, self.file, fixed)

    def _resolve(self, bound: dict[str, str], device_type: int, ordinal: int) -> Any:
        return self.variants(bound, device_type, ordinal)

    @cached_property
    def _is_watched(self) -> bool:
        return (_env.debug() or _env.print_repro() != "") and not _debug.reads_ranks(self.signature["args"])

    def _warn_of_faults(self, args: tuple[object, ...], stream: object | None) -> None:
        if how := _env.print_repro():
            repro.write(self, args, how == "values")
        for fault in _debug.debug(self, args, stream).faults if _env.debug() else ():
            warnings.warn(f'kernel "{self.name}": {fault}', DebugWarning, stacklevel=3)

    @without_frames
    def debug(self, /, *args: object, stream: object | None = None, against: Callable[..., Any] | None = None, **kwargs: object) -> DebugReport:
        """Returns the faults of a call with these arguments (docs/Proofs.md). The arguments are not written.

        First, the rows are followed on the host, operation by operation. This finds accesses out of bounds, elements that two
        rows write, elements that a row reads while another writes them, and elements that a row reads before writing them. Then
        the kernel is launched twice on the tensors' device, into copies of the outputs with different initial contents. Elements
        that both launches leave unchanged are unwritten. A third launch is compared with the reference `against`, if there is
        one. debug() waits for the device.

        A stored NaN is a fault if the kernel computed it from operands that are not NaN. The fault names the operation.

        Args:
            args, kwargs, stream: as for a call. All tensors must be numpy arrays or torch tensors, also those in lists.
            against: a reference function that takes the same arguments in the kernel's order. It returns the expected outputs, or
                writes them into the copies that it gets. The first row that stores a different value is a fault, with the line of
                the store. Rows are compared with the largest tolerance of all outputs. If a difference exceeds only the smaller
                tolerance of its own output, or if its row is not followed, the fault is the output's first different element,
                without row and line. docs/Proofs.md lists the tolerances.

        Raises:
            ArgumentError: an argument is wrong, or the kernel reads tensors of other ranks.
            CompileError: the kernel does not compile for a reason other than its accesses to tensors. An error about accesses is
                part of the report instead.
            UnitError, DriverError: there is no code for these arguments, or no compiler.
        """
        return _debug.debug(self, self._order(args, kwargs), stream, against)


class TextlessVariants(cache.Variants):
    """Specialisations whose file names do not depend on the file and line of the kernel. Errors still name the file and
    the line."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.name, self._without_places, kernel.file)
        self._whole = kernel

    @property
    def digest(self) -> str:
        return self._whole.digest

    @property
    def identity(self) -> str:
        return ""

    def _without_places(self) -> str:
        text: str = toolchain.compiler().compile(self._whole.source, self._whole.file, kernel=self.kernel, emit="source")
        return text

    def _compiled(self) -> str:
        return self._whole.source if _env.line_info() else self.source

    def _compile(self, bindings: dict[str, str], target: str) -> bytes:
        try:
            data = super()._compile(bindings, target)
        except CompileError:
            # The text that was compiled usually has no locations (_without_places). Compile the source, which has them,
            # so that the error has the current location.
            try:
                self._whole.specialize(**bindings)._emit("unit", [target], {})
            except CompileError as error:
                raise _with_binding(error) from None
            raise
        folder = cache.compiler_cache()
        if self._whole._warn(bindings) and folder is not None:
            folder.write_record(self._mark_of_warnings(bindings, target), "true")
        return data

    def _cached(self, folder: disk.Folder | None, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        """Returns the unit on disk, or None. Issues the unit's warnings again in each process that loads it, with the
        current lines of the source."""
        unit = super()._cached(folder, bindings, target)
        if unit is not None and folder is not None and not _env.strict() and folder.read_record(self._mark_of_warnings(bindings, target)) is not None:
            self._whole._warn(bindings)
        return unit

    def _mark_of_warnings(self, bindings: Mapping[str, str], target: str) -> str:
        """Returns the name of the file that marks a unit on disk as having warnings."""
        return self._file(bindings, target).removesuffix(".mlafix") + ".warnings.json"


def _with_binding(error: CompileError) -> CompileError:
    """Adds a hint to an error about a dim that no argument determines, such as a factor of a product. The hint says how
    to bind the dim. Returns other errors unchanged."""
    if error._kind != "unbound dim":
        return error
    note = f"note: no argument determines it: kernel.specialize({error._subject}=…) binds it"
    return CompileError(f"{error.message}\n{note}", error.file, error.line, error.column)


def _target(given: object) -> str:
    """Checks a target that a caller passes, and returns it. For None, returns the target of this machine: of GPU 0, or
    of the CPU if there is no GPU. Raises ArgumentError."""
    if given is not None and not isinstance(given, str):
        raise ArgumentError(f'argument "target": expected the name of a target, as "sm_90", or None, got {given!r}')
    return given or _runtime.device_target("cuda:0" if _runtime.cuda_device_count() else "cpu")


def _targets(given: object) -> list[str]:
    """Checks one target or several that a caller passes, and returns them as a list. Raises ArgumentError."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError(f'argument "targets": expected the names of targets, as ("sm_90", "cpu"), got {given!r}')
    return names
