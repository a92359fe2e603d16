"""Tests a user's kernels under torch.compile and torch.export, and as operators of torch."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import mlafix  # noqa: E402
from devices import has_cuda  # noqa: E402
from mlafix import torch_kernels  # noqa: E402
from mlafix.dsl import DType, In, InOut, Out, bool_, f32, grid, index, load_state, merge, store, store_state  # noqa: E402
from watching import export, operator, seen_by_torch  # noqa: E402

T = DType("T")
N, H, D = 5, 2, 64


@mlafix.kernel
def merge_two(out: Out[T, "n H D"], lse: Out[f32, "n H"] | None, a: In[T, "n H D"], a_lse: In[f32, "n H"], b: In[T, "n H D"],
              b_lse: In[f32, "n H"], live: index.at_most("n"), scale: f32, swap: bool_):  # fmt: skip
    for t, h in grid("n", "H"):
        p = load_state(a[t, h], a_lse[t, h], where=t < live)
        s = load_state(b[t, h], b_lse[t, h])
        store_state(merge(p, s), out[t, h], lse[t, h], scale=scale if swap else 1 / scale)


@mlafix.kernel
def add_one(x: InOut[f32, "n D"]):
    for t in grid("n"):
        x[t] = x[t] + 1.0


@pytest.fixture(params=["cpu", *(["cuda"] if has_cuda() else [])])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def arguments(where: str) -> dict[str, Any]:
    torch.manual_seed(0)
    rows = [torch.randn(N, H, D, device=where, dtype=torch.bfloat16) for _ in range(2)]
    lses = [torch.randn(N, H, device=where) for _ in range(2)]
    return {"out": torch.empty_like(rows[0]), "lse": torch.empty_like(lses[0]), "a": rows[0], "a_lse": lses[0], "b": rows[1],
            "b_lse": lses[1], "live": 3, "scale": 0.5, "swap": True}  # fmt: skip


def layer(a: Any, a_lse: Any, b: Any, b_lse: Any) -> tuple[Any, Any]:
    """Works like a model: allocates outputs, calls a kernel by position and by name, omits an optional output, and
    works in place."""
    out, lse = torch.empty_like(a), torch.empty_like(a_lse)
    merge_two(out, lse, a * 1, a_lse, b, b_lse, a.shape[0] - 1, 0.5, False)
    merge_two(out=out, a=out * 2, a_lse=lse, b=b, b_lse=b_lse, live=2, scale=1.0, swap=True)
    add_one(lse)
    return out + 1, lse


def inputs(where: str) -> tuple[Any, ...]:
    given = arguments(where)
    return given["a"], given["a_lse"], given["b"], given["b_lse"]


def test_operator_is_declared_by_the_signature() -> None:
    schema = str(operator(merge_two)._schema)
    declared = schema.partition("(")[2]
    assert declared == ("Tensor(a!) out, Tensor(b!)? lse, Tensor a, Tensor a_lse, Tensor b, Tensor b_lse, SymInt live, "
                        "Scalar scale, bool swap) -> ()")  # fmt: skip
    assert torch_kernels.register(merge_two) == merge_two.torch_operator()
    assert merge_two.specialize(B=2).torch_operator() != merge_two.torch_operator()


@pytest.mark.parametrize("kernel", ["merge_two", "add_one"])
def test_opcheck(kernel: str, where: str) -> None:
    args = tuple(arguments(where).values()) if kernel == "merge_two" else (torch.randn(N, D, device=where),)
    torch.library.opcheck(operator(globals()[kernel]), args)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compile_fullgraph_gives_the_same_bits(backend: str, where: str) -> None:
    args = inputs(where)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    for got, want in zip(compiled(*args), layer(*args)):
        assert torch.equal(got, want)


def test_export(where: str) -> None:
    args = inputs(where)
    program = export(layer, args)
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert sum("mlafix_kernels.merge_two" in name for name in names) == 2
    for got, want in zip(program.module()(*args), layer(*args)):
        assert torch.equal(got, want)


@mlafix.kernel
def clip(out: Out[T, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        out[t] = min(max(x[t], -1.0), builtins.abs(x[t]))


@mlafix.kernel
def largest(out: Out[f32, "n"], x: In[T, "n D"]):
    for t in grid("n"):
        out[t] = builtins.max(x[t])


def test_min_and_max_of_a_kernel_that_is_first_read_while_torch_exports() -> None:
    """While torch.export (non-strict) traces, it replaces builtins.min and builtins.max. A kernel that is first read at
    that time still gets the real min and max."""

    def both(x: Any) -> tuple[Any, Any]:
        out, top = torch.empty_like(x), x.new_empty(x.shape[:1])
        clip(out, x)
        largest(top, x)
        return out, top

    x = torch.randn(N, D)
    out, top = export(both, (x,)).module()(x)
    assert torch.equal(out, x.clamp(min=-1).minimum(x.abs())) and torch.equal(top, x.max(1).values)
    assert [kernel.digest for kernel in (clip, largest)] == [mlafix.kernel(kernel.function).digest for kernel in (clip, largest)]


def test_kernel_of_a_unit_compiles(tmp_path: Path) -> None:
    merge_two.save(tmp_path / "unit.mlafix", "cpu", H=H, D=D, T="bf16")
    kernel = mlafix.Unit.load(tmp_path / "unit.mlafix")["merge_two"]

    def step(given: dict[str, Any]) -> Any:
        kernel(**given)
        return given["out"] * 2

    eager, traced = arguments("cpu"), arguments("cpu")
    torch._dynamo.reset()
    assert torch.equal(torch.compile(step, fullgraph=True, backend="aot_eager")(traced), step(eager))


@mlafix.kernel
def clear_behind(x: InOut[f32, "n"], live: index.at_most("n").or_tensor):
    for t in grid("n"):
        store(x[t], 0.0, where=t >= live)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_number_that_may_be_a_tensor_becomes_a_symbol(backend: str) -> None:
    """An argument that may be a number or a tensor may also be a symbol: torch.compile makes an int symbolic when it
    sees a second value."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, live: clear_behind(x, live), fullgraph=True, backend=backend)
    for live in (3, 5, 6, torch.tensor([2], dtype=torch.int32)):
        x, y = torch.ones(8), torch.ones(8)
        clear_behind(y, live)
        compiled(x, live)
        assert torch.equal(x, y) and int(x.sum()) == int(live)


def test_a_traced_call_takes_no_stream() -> None:
    with pytest.raises(Exception, match='argument "stream": expected None'):
        torch.compile(lambda x: add_one(x, stream=7), fullgraph=True, backend="aot_eager")(torch.zeros(N, D))


def test_calls_on_plain_tensors_go_straight() -> None:
    x = torch.zeros(N, D)
    add_one(x)
    with seen_by_torch() as seen:
        add_one(x)
    assert (x == 2).all() and [name for name in seen if "add_one" in name] == [f"mlafix_kernels.{add_one.torch_operator()}.default"]
