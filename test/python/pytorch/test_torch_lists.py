"""Tests a user's kernels with lists of tensors, under torch.compile and torch.export, and as operators of torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

import mlafix  # noqa: E402
from devices import has_cuda  # noqa: E402
from mlafix import ops  # noqa: E402
from mlafix.dsl import DType, In, List, Out, f32, grid, identity, load_state, merge, store_state  # noqa: E402
from watching import export, operator, seen_by_torch  # noqa: E402

T = DType("T")
N, H, D, K = 5, 2, 64, 3


@mlafix.kernel
def merge_parts(parts: List[In[T, "n H D"], 8, "k"], lses: List[In[f32, "n H"], 8, "k"], out: Out[T, "n H D"], lse: Out[f32, "n H"] | None):
    for t, h in grid("n", "H"):
        m = identity("D")
        for i in range(len(parts)):
            m = merge(m, load_state(parts[i][t, h], lses[i][t, h]))
        store_state(m, out[t, h], lse[t, h])


@pytest.fixture(params=["cpu", *(["cuda"] if has_cuda() else [])])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def inputs(where: str, count: int = K) -> tuple[list[Any], list[Any]]:
    torch.manual_seed(0)
    parts = [torch.randn(N, H, D, device=where, dtype=torch.bfloat16) for _ in range(count)]
    return parts, [torch.randn(N, H, device=where) for _ in range(count)]


def layer(parts: Any, lses: Any) -> tuple[Any, Any]:
    """Works like a model: passes lists and tuples of inputs and of computed tensors, by position and by name."""
    out, lse = torch.empty_like(parts[0]), torch.empty_like(lses[0])
    merge_parts(parts, [one * 2 for one in lses], out, lse)
    rows = torch.empty_like(out)
    merge_parts(out=rows, parts=(out, parts[0] + 1), lses=(lse, lses[0]))
    return rows + 1, lse


def scaled(parts: Any, lses: Any) -> tuple[Any, Any, Any]:
    scales = parts[0].new_empty((N, H, 2), dtype=torch.float32)
    out, lse = ops.merge_states_list([one * 2 for one in parts], lses, out_format=ops.Fp8Groups(scales))
    return out.view(torch.uint8), lse, scales


def test_operator_is_declared_by_the_signature() -> None:
    schema = str(operator(merge_parts)._schema)
    assert schema.partition("(")[2] == "Tensor[] parts, Tensor[] lses, Tensor(a!) out, Tensor(b!)? lse) -> ()"


@pytest.mark.parametrize("count", [1, K])
def test_opcheck(count: int, where: str) -> None:
    parts, lses = inputs(where, count)
    torch.library.opcheck(operator(merge_parts), (parts, lses, torch.empty_like(parts[0]), torch.empty_like(lses[0])))


@pytest.mark.filterwarnings("default")  # On a GPU, Inductor warns about TensorFloat32.
@pytest.mark.parametrize("function, backend", [(layer, "eager"), (layer, "aot_eager"), (layer, "inductor"), (scaled, "aot_eager")])
def test_compile_fullgraph_gives_the_same_bits(backend: str, function: Any, where: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    for count in (K, 2):  # the second count needs another compilation
        given = inputs(where, count)
        for got, want in zip(compiled(*given), function(*given)):
            assert torch.equal(got, want)


def test_compile_with_dynamic_sizes(where: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (N, 3):
        parts, lses = ([one[:rows] for one in ones] for ones in inputs(where))
        for got, want in zip(compiled(parts, lses), layer(parts, lses)):
            assert torch.equal(got, want)


def test_export(where: str) -> None:
    args = inputs(where)
    program = export(layer, args)
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert sum("mlafix_kernels.merge_parts" in name for name in names) == 2
    for got, want in zip(program.module()(*args), layer(*args)):
        assert torch.equal(got, want)


def test_kernel_of_a_unit_compiles(tmp_path: Path) -> None:
    merge_parts.save(tmp_path / "unit.mlafix", "cpu", H=H, D=D, T="bf16")
    kernel = mlafix.Unit.load(tmp_path / "unit.mlafix")["merge_parts"]

    def step(parts: Any, lses: Any) -> Any:
        out = torch.empty_like(parts[0])
        kernel(parts, lses, out)
        return out * 2

    args = inputs("cpu")
    torch._dynamo.reset()
    assert torch.equal(torch.compile(step, fullgraph=True, backend="aot_eager")(*args), step(*args))


def test_calls_on_lists_of_plain_tensors_go_straight() -> None:
    parts, lses = inputs("cpu")
    out = torch.empty_like(parts[0])
    merge_parts(parts, lses, out)
    with seen_by_torch() as seen:
        merge_parts(parts, lses, out)
    assert [name for name in seen if "merge_parts" in name] == [f"mlafix_kernels.{merge_parts.torch_operator()}.default"]


def test_fake_tensors() -> None:
    """Fake tensors are recognised even while their mode is off, by their type."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    parts, lses = ([mode.from_tensor(one) for one in ones] for ones in inputs("cpu"))
    out, lse, scales = scaled(parts, lses)
    assert {type(one) for one in (out, lse, scales)} == {type(parts[0])} and out.shape == (N, H, D)


def watched_tensors() -> tuple[type[torch.Tensor], list[str]]:
    """Returns a subclass of tensors, and the list of the functions that its tensors have been passed to."""
    seen: list[str] = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Watched, seen


def test_a_subclass_is_found_in_a_list() -> None:
    """A tensor subclass in a list gets the call, like a subclass that is passed directly."""
    watched, seen = watched_tensors()
    parts, lses = inputs("cpu")
    out, want = torch.empty_like(parts[0]), torch.empty_like(parts[0])
    merge_parts(parts, lses, want)
    merge_parts([parts[0], parts[1].as_subclass(watched), parts[2]], lses, out)
    assert f"mlafix_kernels.{merge_parts.torch_operator()}.default" in seen and torch.equal(out, want)


@mlafix.kernel(allow={"bounds"})
def sum_of(out: Out[f32, "n D"], parts: List[In[f32, "n D"], 8]):
    for t in grid("n"):
        total = parts[0][t]
        for i in range(1, len(parts)):
            total = total + parts[i][t]
        out[t] = total


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_subclass_is_found_in_a_list_behind_a_plain_tensor(kind: Any) -> None:
    """A tensor subclass that follows a plain tensor in a list gets the call. This holds also if earlier calls had only
    plain tensors, so that the kernel has a fast path, which calls nothing of torch in Python."""
    watched, seen = watched_tensors()
    parts, out = [torch.full((N, D), float(i)) for i in range(3)], torch.empty(N, D)
    for _ in range(2):
        sum_of(out, kind(parts))
    assert sum_of._dispatch.try_launch((out, kind(parts)), None) is not None
    out.zero_()
    sum_of(out, kind([parts[0], parts[1], parts[2].as_subclass(watched)]))
    assert f"mlafix_kernels.{sum_of.torch_operator()}.default" in seen and out.eq(3.0).all()


def test_a_list_of_a_wrong_length_is_refused_when_it_runs() -> None:
    parts, lses = inputs("cpu")
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    with pytest.raises(mlafix.ArgumentError, match='argument "parts": expected 1 to 8 tensors, got 9'):
        compiled(parts * 3, lses * 3)
