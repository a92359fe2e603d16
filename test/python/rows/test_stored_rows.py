"""Rows with more than 65536 elements, fixed or bounded, that are overwritten while they are still needed. A loaded row
keeps the contents at the time of the load.

The bodies of a few fixed kernels, and of random ones, also run in Python on rows of numpy. The compiled kernel and
Python must give the same bits.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import F32, poison
from sources import load as load_kernels

# rows are overwritten on purpose
pytestmark = pytest.mark.filterwarnings("ignore:expected a store that something reads")

ARGUMENTS = {"x": "InOut", "y": "InOut", "z": "In", "p": "Out", "q": "Out"}  # in the order of the kernels' signatures
DIMS = {"n D": [65537], "n v<=65600": [100, 65536, 65537], "v<=65537": [8, 65537]}
FEW = 100  # the largest number of elements of a row that the PTX interpreter runs

BODIES = {
    "a branch": "if k > 1:\n    x[t] = old * 2.0",
    "one of two branches": "if k > 5:\n    x[t] = old * 2.0\nelse:\n    x[t, 3] = 5.0\n    x[t] = old * 3.0",
    "a loop": "for i in range(k):\n    x[t] = x[t] + old",
    "loops in a branch": "if k > 1:\n    for i in range(k):\n        if k > i:\n            x[t] = old + f32(i)",
    "a branch in a loop": "for i in range(k):\n    if c[t] > i:\n        x[t] = max(x[t], old) + 1.0",
    "a predicate in a branch": "if c[t] > 0:\n    store(x[t], old * 2.0, where=k > 1)",
    "another output in a branch": "if k > 1:\n    p[t] = old * 2.0",
    "a shift of itself": 'x[t] = load(x[t], into="D", first=1)',
    "a shift of itself to the left": 'x[t] = load(x[t], into="D", first=-3)',
    "a shift to another output": 'p[t] = load(z[t], into="D", first=1)',
    "a shift, used later": 'shifted = load(x[t], into="D", first=5, each=2)\nx[t] = 0.0\ny[t] = shifted',
    "a shift in a branch": 'if k > 1:\n    x[t] = load(x[t], into="D", first=1) - old',
    "a shift before a branch": 'shifted = load(x[t], into="D", first=3)\nif k > 1:\n    x[t] = old * 2.0\ny[t] = shifted',
    "an element in a branch": "if c[t] > 0:\n    x[t, 5] = x[t, 6] + 7.0",
}


class Row(np.ndarray):
    """A copy of a row, with `place`, a view of the original memory."""

    place: np.ndarray


class Tensor:
    """An array that stands for a tensor when a kernel's body runs in Python. Indexing it copies the row."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        place = self.array[index]
        if not place.ndim:
            return place
        row = place.copy().view(Row)
        row.place = place
        return row

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value


def run_in_python(text: str, rows: int, arrays: dict[str, np.ndarray], k: int) -> None:
    """Runs the body of the kernel `text` in Python, which modifies `arrays`."""
    size = arrays["x"].shape[-1]

    # True if rows have a bound. Then `load` with `into` gives zeros past the end of the row that it reads. A row of
    # fixed size is repeated there.
    ends = "<=" in text[: text.index("    for t in grid")]

    def load(row: Any, into: str = "", first: int = 0, each: int = 1, where: bool = True) -> Any:
        index = (np.arange(size) - first) // each if into else np.arange(size)
        is_there = (index >= 0) & ((index < size) | (not ends))
        return np.where(where & is_there, row[index % size], F32.type(0))

    def store(row: Row, value: np.ndarray, where: bool) -> None:
        if where:
            row.place[...] = value

    def most(a: Any, b: Any = None) -> Any:
        return a.max() if b is None else np.maximum(a, b)

    words = {"grid": lambda _: range(rows), "load": load, "store": store, "max": most, "abs": np.abs, "where": np.where, "f32": F32.type, "k": k}
    body = re.sub(r"^    ", "", text[text.index("    for t in grid") :], flags=re.MULTILINE)
    with np.errstate(all="ignore"):
        exec(body, {name: Tensor(array) for name, array in arrays.items()} | words | {"iota": lambda _: np.arange(size)})


def head(dim: str) -> list[str]:
    """Returns the first lines of a kernel: its decorator, its signature and its grid."""
    dims = [dim] + [dim.split("<=")[0]] * (len(ARGUMENTS) - 1)
    arguments = [f'{name}: {kind}[f32, "{own}"]' for (name, kind), own in zip(ARGUMENTS.items(), dims)]
    if dim[0] == "n":
        arguments.append('c: In[i32, "n"]')
    rows = '"n"' if dim[0] == "n" else "1"
    return ['@mlafix.kernel(allow={"bounds"})', f"def kernel({', '.join(arguments)}, k: i32):", f"    for t in grid({rows}):"]


class Writer:
    """Writes the text of a random kernel."""

    def __init__(self, rng: np.random.Generator, dims: list[str]) -> None:
        self.rng = rng
        self.dim = self.pick(dims)
        # The number of branches and loops that may still follow. Each of them keeps rows on a thread's small stack, so
        # there can only be a few.
        self.nested = 3
        self.name = re.findall("[Dv]", self.dim)[0]
        self.lines = head(self.dim)
        self.write()
        self.text = "\n".join(self.lines) + "\n"

    def pick(self, choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def row(self, names: str = "xy") -> str:
        return f"{self.pick(names)}[{'t' if self.dim[0] == 'n' else ':'}]"

    def element(self) -> str:
        return f"{self.pick('xy')}[{'t, ' if self.dim[0] == 'n' else ''}{self.pick('036')}]"

    def count(self) -> str:
        return self.pick(["k", "c[t]"]) if self.dim[0] == "n" else "k"

    def condition(self) -> str:
        return self.pick([f"{self.count()} > {self.pick('0123')}", f"{self.element()} > 0.0"])

    def value(self) -> str:
        a, b, source = self.pick("uvw"), self.pick("uvw"), self.row("xyz")
        return self.pick([
            source, source, f'load({source}, into="{self.name}", first={self.pick(["0", "1", "5", "-1"])}, each={self.pick("12")})',
            f"load({source}, where={self.condition()})",
            f"{a} + {b}", f"{a} - max({b})", f"max({a}, {source})", f"{source} * 2.0", f'where(iota("{self.name}") % 3 == 0, {a}, {b})',
            f"abs({a}) - {self.element()}",
        ])  # fmt: skip

    def statement(self, depth: int, indent: str) -> None:
        kinds = ["row", "store", "store where", "element"]
        kind = self.pick([*kinds, "if", "if", "for", "for"] if depth and self.nested else ["row", "store", *kinds])
        if kind in ("if", "for"):
            self.nested -= 1
            self.lines.append(f"{indent}if {self.condition()}:" if kind == "if" else f"{indent}for i in range({self.pick([self.count(), '2'])}):")
            self.block(depth - 1, indent + "    ")
            if kind == "if" and self.rng.random() < 0.5:
                self.lines.append(f"{indent}else:")
                self.block(depth - 1, indent + "    ")
        else:
            self.lines.append(indent + {
                "row": f"{self.pick('uvw')} = {self.value()}",
                "store": f"{self.row('xxyypq')} = {self.pick([self.value(), self.pick('uvw') + ' * 2.0'])}",
                "store where": f"store({self.row('xxyypq')}, {self.pick('uvw')}, where={self.condition()})",
                "element": f"{self.element()} = {self.pick(['7.0', 'max(u)'])}",
            }[kind])  # fmt: skip

    def block(self, depth: int, indent: str) -> None:
        for _ in range(self.rng.integers(1, 3 + depth // 2)):
            self.statement(depth, indent)

    def write(self) -> None:
        indent = " " * 8
        self.lines.append(f"{indent}u, v, w = {self.row('x')}, {self.row('y')}, {self.row('z')}")
        self.lines.append(f"{indent}x0, y0, z0 = {self.row('x')}, load({self.row('y')}, into=\"{self.name}\", first=1), {self.row('z')}")
        for _ in range(2):
            self.block(2, indent)
        self.lines += [f"{indent}{self.row('p')} = u - x0", f"{indent}{self.row('q')} = v + y0", f"{indent}{self.row('y')} = w - z0"]


def check(kernel: Any, text: str, device: Device, rng: np.random.Generator, size: int, k: int) -> None:
    """Calls the kernel once without an alias and once for each output that may be `z`, and checks all arguments."""
    rows = 2 if '"n"' in text else 1
    shape = (rows, size) if '"n"' in text else (size,)
    counts = {"c": np.array([1, 3], np.int32)} if '"n"' in text else {}
    aliases = [list(ARGUMENTS)[written] for written, read in kernel.signature["aliases"] if list(ARGUMENTS)[read] == "z"]
    given = {name: rng.integers(-8, 9, shape).astype(F32) for name in ARGUMENTS}
    for alias in ["", *aliases]:
        want = {name: array.copy() for name, array in given.items()}
        put = {name: device.put(poison(shape, F32) if ARGUMENTS[name] == "Out" else array.copy()) for name, array in given.items()}
        if alias:
            want[alias], put[alias] = want["z"], put["z"]
        run_in_python(text, rows, want | counts, k)
        kernel(*put.values(), *map(device.put, counts.values()), k)
        for name in ARGUMENTS:
            np.testing.assert_array_equal(device.get(put[name]), want[name], err_msg=f"{name}, in place: {alias or 'nothing'}, {size} elements\n{text}")


@pytest.mark.parametrize(("dim", "size"), [("n D", 65536), ("n D", 65537), ("v<=65537", 9)])
@pytest.mark.parametrize("body", BODIES)
def test_an_old_row(tmp_path: Path, device: Device, rng: np.random.Generator, body: str, dim: str, size: int) -> None:
    if device.name == "ptx" and size > FEW:
        pytest.skip("takes minutes without a GPU")
    lines = ["old = x[t]", *BODIES[body].splitlines(), "p[t] = old", "q[t] = x[t]"]
    text = "\n".join(head(dim) + [" " * 8 + line for line in lines]) + "\n"
    if dim != "n D":
        text = text.replace("c[t]", "k").replace("[t", "[:").replace("[:, ", "[").replace('into="D"', 'into="v"')
    kernel = load_kernels(tmp_path, text).kernel
    assert any(pair[1] == 2 for pair in kernel.signature["aliases"])
    check(kernel, text, device, rng, size, 3)


@pytest.mark.parametrize("seed", range(16))
def test_random_rows(tmp_path: Path, device: Device, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = {dim: [size for size in of if device.name != "ptx" or size <= FEW] for dim, of in DIMS.items()}
    writer = Writer(rng, [dim for dim in sizes if sizes[dim]])
    kernel = load_kernels(tmp_path, writer.text).kernel
    for size in sizes[writer.dim]:
        check(kernel, writer.text, device, rng, size, int(rng.integers(4)))
