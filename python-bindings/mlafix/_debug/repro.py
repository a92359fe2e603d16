"""Writes a Python script that repeats a launch, for `MLAFIX_PRINT_REPRO=1`."""

from __future__ import annotations

import hashlib
import sys
import threading
from pathlib import Path
from typing import Any

import numpy

from .._launcher.arguments import wrong
from .._launcher.arrays import is_torch

FOLDER = "mlafix-repro"
_lock = threading.Lock()
_written: set[str] = set()

_HEAD = '''"""The launch of kernel "{name}"{bound}, as MLAFIX_PRINT_REPRO={how} wrote it. {what}"""

from pathlib import Path

import numpy
import mlafix
{imports}
HERE = Path(__file__).parent
kernel = mlafix.Kernel.load(HERE / "{stem}.mlir", "{name}"){specialize}


def laid_out(flat, shape, strides):
    """The elements of `flat`, shape in elements, in memory of its own with these strides in elements."""
    size = 1 + sum((n - 1) * step for n, step in zip(shape, strides)) if all(shape) else 0
    memory = {empty}
    view = {view}
    view[...] = flat.reshape(shape)
    return view


'''
_NUMPY = {
    "empty": "numpy.zeros(size, flat.dtype)",
    "view": (  # views the memory as integers first, since as_strided does not work on the dtype ml_dtypes.float8_e5m2
        'numpy.lib.stride_tricks.as_strided(memory.view(f"u{flat.itemsize}"), shape, [step * flat.itemsize for step in strides]).view(flat.dtype)'
    ),
}
_TORCH = {"empty": "torch.zeros(size, dtype=flat.dtype, device=flat.device)", "view": "memory.as_strided(shape, strides)"}
_VALUES = 'values = numpy.load(HERE / "{stem}.npz")\n'


class _Given:
    """An array that was passed to a call. `code` returns code that creates an array of the same layout."""

    def __init__(self, array: Any, name: str) -> None:
        self.is_torch = is_torch(array)
        if not self.is_torch and not isinstance(array, numpy.ndarray):
            raise wrong(name, "a numpy array, a torch tensor or a number", f"{type(array).__qualname__}; pass torch.from_dlpack(x), or numpy.from_dlpack(x) on the CPU")
        self.array, self.shape = array, tuple(array.shape)
        if self.is_torch:
            self.strides, self.address = tuple(array.stride()), array.data_ptr()
            self.dtype, self.device = str(array.dtype).rpartition(".")[2], str(array.device)
        else:
            self.strides, self.address = tuple(step // array.itemsize for step in array.strides), array.ctypes.data
            self.dtype, self.device = array.dtype.name, "cpu"

    @property
    def place(self) -> tuple[Any, ...]:
        return self.address, self.shape, self.strides, self.dtype

    def bits(self) -> numpy.ndarray:
        """Returns the elements in row-major order, as unsigned integers (as bytes for torch)."""
        if not self.is_torch:
            return numpy.ascontiguousarray(self.array).reshape(-1).view(f"u{self.array.itemsize}")
        import torch

        return self.array.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy()

    def code(self, name: str, with_values: bool) -> str:
        count = numpy.prod(self.shape, dtype=int)
        is_integer = "int" in self.dtype or self.dtype == "bool"
        if self.is_torch:
            kind = f"torch.{self.dtype}"
            values = f'torch.from_numpy(values["{name}"]).view({kind})' if with_values else f"torch.zeros({count}, dtype={kind})" if is_integer else (
                f"torch.randn({count}).to({kind})")
            flat = f'{values}.to("{self.device}")'
        else:
            kind = f"ml_dtypes.{self.dtype}" if self.array.dtype.type.__module__ == "ml_dtypes" else f'"{self.dtype}"'
            flat = f'values["{name}"].view({kind})' if with_values else f"numpy.zeros({count}, {kind})" if is_integer else (
                f"numpy.random.default_rng(0).standard_normal({count}).astype({kind})")
        return f"{name} = laid_out({flat}, {self.shape}, {self.strides})"


class _Script:
    """Converts the arguments of a call to code, and collects the values that the code loads."""

    def __init__(self, with_values: bool) -> None:
        self.with_values = with_values
        self.lines: list[str] = []
        self.values: dict[str, numpy.ndarray] = {}
        self._places: dict[tuple[Any, ...], str] = {}

    def spell(self, one: Any, argument: str) -> str:
        """Returns the code for an argument. Arguments with the same address, shape, strides and dtype share an
        array."""
        if one is None or isinstance(one, (bool, int, float)):
            return repr(one)
        if isinstance(one, (list, tuple)):
            return f"[{', '.join(self.spell(each, argument) for each in one)}]"
        array = _Given(one, argument)
        if array.place not in self._places:
            name = self._places[array.place] = f"array_{len(self._places)}"
            self.lines.append(array.code(name, self.with_values))
            if self.with_values:
                self.values[name] = array.bits()
        return self._places[array.place]


def write(kernel: Any, args: tuple[object, ...], with_values: bool) -> None:
    """Writes a launch as a script to the folder `mlafix-repro`, and prints the script's path to stderr. Does nothing if
    this process has written the same launch before. With `with_values`, stores the values of the arrays, and waits for
    the device. `args` are in the kernel's order.

    Raises:
        ArgumentError: an array belongs to neither numpy nor torch.
    """
    script = _Script(with_values)
    given = [f"{name}={script.spell(one, name)}" for (name, _), one in zip(kernel._arguments, args)]
    lines = [*script.lines, f"kernel({', '.join(given)})"]
    fixed = kernel._fixed
    mark = hashlib.sha256("\n".join([kernel.source, *map(str, sorted(fixed.items())), *lines]).encode()).hexdigest()[:8]
    stem = f"{kernel.name}-{mark}"
    with _lock:
        if stem in _written:
            return
        _written.add(stem)
    code = "\n".join(lines)
    torch = "torch." in code
    imports = ("import ml_dtypes\n" if "ml_dtypes." in code else "") + ("import torch\n" if torch else "")
    head = _HEAD.format(
        name=kernel.name, stem=stem, how="values" if with_values else "1", imports=imports, **(_TORCH if torch else _NUMPY),
        bound=f" [{', '.join(f'{name}={value}' for name, value in sorted(fixed.items()))}]" if fixed else "",
        specialize=f".specialize({', '.join(f'{name}={value!r}' for name, value in sorted(fixed.items()))})" if fixed else "",
        what="Its values are those of the launch." if with_values else "Its values are random, integers 0.",
    )
    folder = Path(FOLDER)
    folder.mkdir(exist_ok=True)
    (folder / f"{stem}.mlir").write_text(kernel.source, encoding="utf-8")
    if with_values:
        numpy.savez(folder / f"{stem}.npz", **script.values)
    (folder / f"{stem}.py").write_text(f"{head}{_VALUES.format(stem=stem) if with_values else ''}{code}\n", encoding="utf-8")
    print(f'mlafix: the launch of kernel "{kernel.name}" is the script {folder / stem}.py', file=sys.stderr)
