"""Tests every function under torch.compile and torch.export, with fake and meta tensors, and with gradients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import mlafix  # noqa: E402
from calls import FUNCTION_OF  # noqa: E402
from mlafix import ops  # noqa: E402
from programs_of_torch import PROGRAMS, WITHOUT, Program, all_functions  # noqa: E402
from watching import export  # noqa: E402

SHAPES = (5, 4, 64), (6, 8, 32), (9, 4, 64)
"""Triples of tokens, heads and head dim. The third shape needs the same kernels as the first, and runs the graph that
torch compiles for any sizes when it sees the second shape. Kernels of the first two shapes are also those of calls.py and
test_serving.py, so that a cache folder has them."""


@pytest.fixture(autouse=True)
def unmeasured_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omits a measurement of guards that torch logs after each compilation. The measurement empties the processor's
    caches and takes 30 of a program's 300 ms."""
    monkeypatch.setattr("torch._dynamo.guards.profile_guard_manager", lambda *_: 0.0, raising=False)


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    torch.manual_seed(0)
    torch._dynamo.reset()
    return PROGRAMS[request.param]


def leaves(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def same(got: Any, want: Any) -> bool:
    """Returns true if there is at least one tensor, and all tensors are equal. NaN equals NaN."""
    pairs = list(zip(leaves(got), leaves(want), strict=True))
    return bool(pairs) and all(a.dtype == b.dtype and torch.allclose(a, b, 0, 0, equal_nan=True) if a.is_floating_point() and a.itemsize > 1
                               else torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in pairs)  # fmt: skip


def test_every_function_is_here() -> None:
    assert all_functions() - WITHOUT == {FUNCTION_OF.get(name, name) for name in PROGRAMS}


FEW = ("merge_attn_states", "softmax", "quantize_fp8_static", "flashinfer.merge_state", "zero_blocks")
"""Programs of different kinds, for tests of code that all programs share."""


def compiles_for_three_shapes(program: Program, dynamic: bool | None, backend: str) -> None:
    compiled = torch.compile(program.run, fullgraph=True, dynamic=dynamic, backend=backend)
    with torch._dynamo.config.patch(capture_scalar_outputs=program.waits):
        for shape in SHAPES:
            tensors = program.make(*shape)
            assert same(compiled(*tensors), program.run(*tensors)), shape


# This test must be first. After calls with fixed sizes, a cache key with a symbol might be found equal to one without.
def test_compiles_with_dynamic_sizes(program: Program) -> None:
    """Every program compiles with dynamic sizes, and gives right results for three shapes. test_torch_ways.py compiles
    all functions with fixed sizes in one graph."""
    compiles_for_three_shapes(program, True, "aot_eager")


@pytest.mark.parametrize("program", FEW, indirect=True)
@pytest.mark.parametrize("dynamic, backend", [(True, "eager"), (None, "aot_eager")])
def test_compiles_for_three_shapes(program: Program, dynamic: bool | None, backend: str) -> None:
    """The programs in FEW also compile with the backend eager, and with dynamic=None. With dynamic=None, torch compiles
    the sizes of the first shape as constants, and makes sizes dynamic from the second shape on."""
    compiles_for_three_shapes(program, dynamic, backend)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder that contains each exported program, its arguments and its results."""
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    for name, program in PROGRAMS.items():
        if program.waits:
            continue

        tensors = program.make(*SHAPES[0])
        with torch.no_grad():
            torch.export.save(export(program.run, tensors), folder / f"{name}.pt2")
        torch.save((tensors, leaves(program.run(*tensors))), folder / f"{name}.pt")
    return folder


LOAD = """
{imports}
import pathlib, sys
for path in map(pathlib.Path, sys.argv[1:]):
    try:
        tensors, want = torch.load(path.with_suffix(".pt"))
        got = torch.utils._pytree.tree_leaves(torch.export.load(path).module()(*tensors))
        view = lambda x: x.contiguous().view(torch.uint8)
        assert len(got) == len(want) and all(map(torch.equal, map(view, got), map(view, want))), "other values"
    except Exception as error:
        print(path.stem, repr(error)[:200])
"""


@pytest.mark.parametrize(("imports", "names"), [("import torch, mlafix", PROGRAMS), ("import mlafix, torch; mlafix.register_torch_operators()", FEW)],
                         ids=["torch first", "mlafix first"])  # fmt: skip
def test_an_exported_program_runs_in_another_process(exported: Path, imports: str, names: Iterable[str]) -> None:
    paths = [str(exported / f"{name}.pt2") for name in names if not PROGRAMS[name].waits]
    done = subprocess.run([sys.executable, "-c", LOAD.format(imports=imports), *paths], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def answer(program: Program, tensors: Any) -> Any:
    """Returns the shapes, dtypes and strides of a program's results, or ArgumentError if the call is refused."""
    try:
        return [(tuple(leaf.shape), leaf.dtype, leaf.stride()) for leaf in leaves(program.run(*tensors))]
    except mlafix.ArgumentError:
        return mlafix.ArgumentError


def spoiled(tensors: Any) -> Any:
    """Yields the tensors, and variants of them with one mistake each: one more dim, other sizes, or another dtype."""
    yield tensors
    for i, tensor in enumerate(tensors):
        longer = torch.zeros([size + 1 for size in tensor.shape], dtype=torch.uint8).to(tensor.dtype)
        for other in (tensor[None], longer.narrow(-1, 0, tensor.shape[-1]) if tensor.dim() > 1 else longer, tensor.to(torch.int64)):
            yield (*tensors[:i], other, *tensors[i + 1 :])


@pytest.mark.parametrize("kind", ["fake", "meta"])
def test_tensors_without_memory_are_answered_as_others_are(program: Program, kind: str) -> None:
    """Calls on tensors without memory run nothing. Their results have the shapes, dtypes and strides of real ones, and
    the same calls are refused."""
    if program.waits:
        pytest.skip("its result's size depends on values")
    mode = FakeTensorMode()
    for tensors in spoiled(program.make(*SHAPES[0])):
        without = [mode.from_tensor(tensor) if kind == "fake" else
                   torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta") for tensor in tensors]  # fmt: skip
        assert answer(program, without) == answer(program, tensors), [(tuple(t.shape), t.dtype) for t in tensors]


def test_gradients_are_refused(program: Program) -> None:
    """Tensors that require gradients are refused: by eager calls of every program, and under torch.compile for FEW."""
    tensors = [t.requires_grad_() if t.is_floating_point() and t.itemsize > 1 else t for t in program.make(*SHAPES[0])]
    if not any(t.requires_grad for t in tensors):
        pytest.skip("has no floats that autograd follows")
    if program is PROGRAMS["vllm.init_mla_context_partial"]:
        pytest.skip("takes the shapes of its floats, and no values")
    compiled = torch.compile(program.run, fullgraph=True, backend="aot_eager")
    for run in (program.run, compiled) if program in map(PROGRAMS.get, FEW) else (program.run,):
        with pytest.raises(Exception, match="expected a tensor that autograd does not follow"):
            run(*tensors)


def test_gradients_are_refused_by_an_exported_program() -> None:
    def softmax(x: torch.Tensor) -> Any:
        return ops.softmax(x)

    x = torch.randn(3, 64)
    program = export(softmax, (x,)).module()
    with pytest.raises(mlafix.ArgumentError, match='argument "x": expected a tensor that autograd does not follow'):
        program(x.requires_grad_())
    compiled = torch.compile(softmax, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert torch.equal(program(x), ops.softmax(x)) and torch.equal(compiled(x), ops.softmax(x))


X, STATES = torch.randn(4, 64), [torch.randn(4, 2, 64), torch.randn(4, 2)] * 2
FLOATS = {
    "a scale of the result": lambda v: ops.merge_attn_states(*STATES, lse_layout="nh", out_format=ops.Fp8(v))[0].view(torch.uint8),
    "softmax": lambda v: ops.softmax(X, v),
    "rmsnorm": lambda v: ops.rmsnorm(X, X[0], v),
    "quantize_fp8_static": lambda v: ops.quantize_fp8_static(X, v).view(torch.uint8),
    "pack_rows": lambda v: ops.pack_rows(X, torch.tensor([0, 1, 4], dtype=torch.int32), 5, pad=v),
    "a global scale": lambda v: ops.quantize_groups(X, ops.NvFp4(torch.empty(4, 4, dtype=torch.uint8), v)),
}  # fmt: skip


@pytest.mark.parametrize("call", FLOATS)
def test_a_float_that_changes_is_no_constant(call: str) -> None:
    """torch.compile does not compile anew for each value of a float argument. After 8 compilations, it would fail."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(FLOATS[call], fullgraph=True, backend=counter)
    for value in (0.25, 0.5, 0.75, 1.5):
        assert torch.equal(compiled(value), FLOATS[call](value))
    assert counter.frame_count == 2
