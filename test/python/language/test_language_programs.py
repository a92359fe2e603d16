"""Tests that random kernels give the same results on the CPU as the same text run by Python, and that mangled kernels
compile or raise a CompileError."""

from __future__ import annotations

import ast
import copy
import random
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from programs import ROWS, SIZE, WORDS, programs
from sources import HEADER, load

import mlafix

KERNEL = """
@kernel(allow={"bounds"})
def k(y: Out[f32, "n D"], e: Out[f32, "n"], g: Out[i32, "n"], h: Out[bool_, "n"], a: In[f32, "n D"], b: In[f32, "n D"],
      c: In[i32, "n"], f: f32, k: i32):
    for t in grid("n"):
"""
LIBRARY = Path(__file__).resolve().parents[3] / "python-bindings" / "mlafix" / "kernels"
MODULES = ("blank", "merge", "merge_many", "merge_mapped", "metadata", "rows")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), st.integers(-8, 8), st.integers(-8, 8), st.integers(0, 2**32 - 1))
def test_random_programs_do_what_python_does(folder: Path, body: str, f: int, k: int, seed: int) -> None:
    note(body)
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-8, 9, (ROWS, SIZE)).astype(np.float64) for _ in range(2))
    c = rng.integers(-8, 9, ROWS).astype(np.int32)
    want = [np.zeros((ROWS, SIZE)), np.zeros(ROWS), np.zeros(ROWS, np.int64), np.zeros(ROWS, bool)]
    names = dict(zip("yegh", want), a=a, b=b, c=c.astype(np.int64), f=float(f), k=k)
    exec(f"for t in grid('n'):\n{textwrap.indent(textwrap.dedent(body), '    ')}", {**WORDS, **names})

    got = [np.full((ROWS, SIZE), np.nan, np.float32), np.full(ROWS, np.nan, np.float32), np.full(ROWS, -77, np.int32), ~want[3]]
    load(folder, KERNEL + body).k(*got, a.astype(np.float32), b.astype(np.float32), c, float(f), k)
    for expected, result in zip(want, got):
        np.testing.assert_array_equal(result, expected)


STRANGE = [
    "0", "-1", "1.5", "None", "True", "'D'", "1e999", "10**400", "1 / 0", "'\\ud800'", "()", "[]", "{}", "...", "x", "t", "out",
    "out.shape", "out.shape[0]", "out[t]", "out[t, h]", "out[0, 0]", "out[:]", "out[t, h, :]", "lse[h, t]", "not t", "~t", "-t",
    "t < 1", "t < h < 1", "t if t < 1 else h", "t < 1 and h < 1", "t == 1 or missing", "lambda s: s", "lambda: 1", "f'{t}'",
    "grid", "grid('n')", "range(3)", "merge", "merge()", "identity('D')", "identity('D', base=2)", "load(out[t, h], where=t < 1)",
    "load_state(out[t, h], lse[h, t])", "make_state(out[t, h], 0.0)", "sum(out[t, h])", "max(1, 2.5)", "min(t, 1)", "abs(-1)",
    "f32(t)", "i32(t)", "i64(1.5)", "index(1)", "bool_(t)", "bf16(1)", "exp(1.0)", "tanh(f32(t))", "where(t < 1, 1, 2.0)",
    "fma(1.0, 2.0, f32(t))", "splat(1.0, 'D')", "shape('n')", "present(out)", "out is None", "mlafix", "math.inf", "math.exp",
    "numpy.float32(1)", "T", "I", "In", "In[f32, 'n']", "is_empty(1.0, 2.0)", "is_empty", "print", "type", "(t, h)", "x @ x",
]  # fmt: skip
STATEMENTS = [
    "pass", "return", "t = 1", "v = t", "v, w = 1, 2", "h += 1", "out[t, h] = 1.0", "out[t] = 1", "store(out[t, h], 0.0)",
    "for i in range(3):\n    v = i", "for i in (1, 2):\n    v = i", "for t in grid('n'):\n    pass", "if t < 1:\n    v = 1.0",
    "if t < 1:\n    v = 1\nelse:\n    v = 2.0", "while True:\n    pass", "assert t", "def f():\n    pass", "store_state(identity('D'))",
]  # fmt: skip


class Mangler(ast.NodeTransformer):
    """Replaces some expressions by others, and replaces or inserts some statements."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self.rng = rng
        self.rate = rate

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        is_value = isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store)
        if is_value and self.rng.random() < self.rate:
            return ast.parse(self.rng.choice(STRANGE), mode="eval").body
        body = getattr(node, "body", None)
        if isinstance(body, list) and self.rng.random() < self.rate:
            extra = ast.parse(self.rng.choice(STATEMENTS)).body
            i = self.rng.randrange(len(body) + 1)
            body[i : i + self.rng.randint(0, 1)] = extra
        return node


def kernels_of(file: Path) -> list[tuple[ast.FunctionDef, str]]:
    """Returns the kernels of a library module. Each has the rest of the module as its header."""
    tree = ast.parse(file.read_text())
    body = tree.body[2:]  # without the docstring and the import from __future__
    kernels = [node for node in body if isinstance(node, ast.FunctionDef) and [ast.unparse(one) for one in node.decorator_list] == ["kernel"]]
    rest = "\n".join(ast.unparse(node) for node in body if node not in kernels)
    return [(kernel, "from __future__ import annotations\n" + HEADER + rest + "\n") for kernel in kernels]


def test_mangled_kernels_raise_nothing_but_compile_errors(folder: Path) -> None:
    """Every mangled kernel that Python accepts compiles, or raises a CompileError with a location."""
    kernels = [pair for module in MODULES for pair in kernels_of(LIBRARY / f"{module}.py")]
    rng = random.Random(7)
    made = refused = 0
    for _ in range(250):
        kernel, header = rng.choice(kernels)
        kernel = Mangler(rng, rng.choice([0.01, 0.03, 0.1])).visit(copy.deepcopy(kernel))
        kernel.decorator_list = [ast.Name("kernel", ast.Load())]
        try:
            module = load(folder, ast.unparse(ast.fix_missing_locations(kernel)), header)
        except (SyntaxError, ValueError):
            continue  # Python itself rejects the text
        try:
            getattr(module, kernel.name).ir("source")
            made += 1
        except mlafix.CompileError as error:
            refused += 1
            assert error.file and error.line, error.message
    assert made > 25 and refused > 75
