"""Tests the fast path that calls on plain torch tensors take, which allocates outputs in C++. Its results must equal
those of the general path."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

import mlafix  # noqa: E402
from devices import TorchDevice, has_cuda  # noqa: E402
from mlafix import library, ops  # noqa: E402
from mlafix._runtime import NewTensor, SizeOf  # noqa: E402
from mlafix.compat import flash_attn  # noqa: E402
from mlafix.ops import _families  # noqa: E402

N, H, D = 5, 4, 64
DEVICES = [TorchDevice("cpu"), *([TorchDevice("cuda")] if has_cuda() else [])]


@pytest.fixture(params=DEVICES, ids=lambda device: device.name)
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param.where)


@contextlib.contextmanager
def long_way() -> Iterator[None]:
    """Disables the fast paths of all kernels."""
    kept = {name: dict(family.fast) for name, family in _families.FAMILIES.items()}
    for family in _families.FAMILIES.values():
        family.fast = Refusing()
    try:
        yield
    finally:
        for name, family in _families.FAMILIES.items():
            family.fast = kept[name]


class Refusing(dict):  # type: ignore[type-arg]
    """A dict that ignores what is stored in it."""

    def __setitem__(self, key: Any, value: Any) -> None:
        return


def merges(where: str) -> dict[str, Callable[[], tuple[Any, Any]]]:
    """Returns calls that allocate all their outputs, by name. There is one for each form of call with a fast path."""
    rows = [torch.randn(N, H, D, device=where).bfloat16() for _ in range(2)]
    lses = [torch.randn(H, N, device=where) for _ in range(2)]
    token_lses = [lse.T.contiguous() for lse in lses]
    turned = torch.randn(H, N, D, device=where).transpose(0, 1)
    wide = torch.randn(N, H, 2 * D, device=where).half()[..., :D]
    empty_row, infinite = torch.randn(N, H, D, device=where), torch.full((H, N), float("inf"), device=where)
    many, many_lses = torch.randn(N, 3, H, D, device=where).half(), torch.randn(N, 3, H, device=where)
    cascade, cascade_lses = torch.randn(N, 9, H, D, device=where), torch.randn(N, 9, H, device=where)
    part, part_lse = torch.randn(3, 2, N, H, D, device=where), torch.randn(3, 2, H, N, device=where).transpose(2, 3)
    return {
        "merge": lambda: ops.merge_attn_states(rows[0], lses[0], rows[1], lses[1]),
        "merge, threshold": lambda: ops.merge_attn_states(rows[0], lses[0], rows[1], lses[1], context_rows=2),
        "merge, copies": lambda: ops.merge_attn_states(empty_row, infinite, empty_row, infinite, context_rows=2, copy_past_context=True),
        "merge, empty states": lambda: ops.merge_attn_states(empty_row, infinite, empty_row, infinite, context_rows=2),
        "merge, no lse": lambda: ops.merge_attn_states(rows[0], lses[0], rows[1], lses[1], return_lse=False),
        "merge, nh, base 2": lambda: ops.merge_attn_states(rows[0], token_lses[0], rows[1], token_lses[1], lse_layout="nh", base="2"),
        "merge, lses turned": lambda: ops.merge_attn_states(rows[0], token_lses[0].T, rows[1], token_lses[1].T),
        "merge, rows turned": lambda: ops.merge_attn_states(turned, lses[0], turned, lses[1]),
        "merge, rows apart": lambda: ops.merge_attn_states(wide, lses[0], wide, lses[1]),
        "merge, no rows": lambda: ops.merge_attn_states(rows[0][:0], lses[0][:, :0], rows[1][:0], lses[1][:, :0]),
        "dense": lambda: ops.merge_states(many, many_lses),
        "cascade": lambda: ops.merge_states(cascade, cascade_lses, base="2"),
        "split": lambda: ops.combine_split_kv(part, part_lse),
        "split, bf16": lambda: ops.combine_split_kv(part, part_lse, out_dtype=torch.bfloat16),
        "split, f16 by name": lambda: ops.combine_split_kv(part, part_lse, out_dtype="f16", return_lse=False),
        "flash_attn": lambda: flash_attn.flash_attn_combine(part, part_lse),
        "flash_attn, bf16, no lse": lambda: flash_attn.flash_attn_combine(part, part_lse, out_dtype=torch.bfloat16, return_lse=False),
        "flash_attn, varlen": lambda: flash_attn.flash_attn_combine(part[:, 0], part_lse[:, 0]),
    }


def described(tensor: Any) -> Any:
    """Returns all properties of a tensor that a caller can see, except for its address."""
    if tensor is None:
        return None
    return (type(tensor), tensor.dtype, tensor.device, tuple(tensor.shape), tensor.stride(), tensor.requires_grad,
            tensor.is_inference(), tensor.view(torch.uint8 if tensor.element_size() == 1 else
                                               torch.int16 if tensor.element_size() == 2 else torch.int32).tolist())


@pytest.mark.parametrize("name", list(merges("cpu")))
@pytest.mark.parametrize("inference", [False, True], ids=["eager", "inference"])
def test_outputs_are_those_of_the_long_way(name: str, inference: bool, where: str) -> None:
    for other in merges(where).values():
        other()  # Creates the fast paths of the other calls, so that choosing a wrong one is possible.
    call = merges(where)[name]
    with torch.inference_mode(inference):
        with long_way():
            want = [described(tensor) for tensor in call()]
        for _ in range(4):  # the first call has no fast path yet
            got = call()
            assert isinstance(got, tuple) and [described(tensor) for tensor in got] == want


def test_each_call_has_memory_of_its_own(where: str) -> None:
    for name, call in merges(where).items():
        kept = [tensor for _ in range(5) for tensor in call() if tensor is not None and tensor.numel()]
        assert len({tensor.data_ptr() for tensor in kept}) == len(kept), name
        assert all(tensor.untyped_storage().nbytes() >= tensor.numel() * tensor.element_size() for tensor in kept), name


def test_outputs_given_are_returned_themselves(where: str) -> None:
    rows, lse = torch.randn(N, H, D, device=where), torch.randn(H, N, device=where)
    out, out_lse = torch.empty_like(rows), torch.empty_like(lse)
    for _ in range(3):
        got = ops.merge_attn_states(rows, lse, rows, lse, out=out, out_lse=out_lse)
        assert got[0] is out and got[1] is out_lse
        got = ops.merge_attn_states(rows, lse, rows, lse, out=out, return_lse=False)
        assert got[0] is out and got[1] is None
        assert ops.merge_attn_states(rows, lse, rows, lse, out_lse=out_lse)[1] is out_lse


def test_binding_launches_nothing_where_there_is_a_fast_path(where: str) -> None:
    rows, lse = torch.ones(N, H, D, device=where), torch.zeros(H, N, device=where)
    out, out_lse = torch.empty_like(rows), torch.empty_like(lse)
    for _ in range(3):
        ops.merge_attn_states(rows, lse, rows, lse, out=out, out_lse=out_lse)
    out.fill_(7)
    bound = ops.merge_attn_states.bind(rows, lse, rows, lse, out=out, out_lse=out_lse)
    assert out.eq(7).all()
    bound()
    assert out.eq(1).all()


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "fewer dims": lambda rows, lse: ops.merge_attn_states(rows[0], lse, rows, lse),
    "another size": lambda rows, lse: ops.merge_attn_states(rows, lse, rows[:, 1:], lse),
    "another dtype": lambda rows, lse: ops.merge_attn_states(rows, lse, rows.half(), lse),
    "a size of the lse": lambda rows, lse: ops.merge_attn_states(rows, lse[:, 1:], rows, lse),
    "a list": lambda rows, lse: ops.merge_attn_states(rows, lse, rows, [1.0]),
    "None": lambda rows, lse: ops.merge_attn_states(rows, lse, None, lse),
    "an integer": lambda rows, lse: ops.merge_attn_states(rows, lse, rows, lse, context_rows="3"),
    "a threshold past the end": lambda rows, lse: ops.merge_attn_states(rows, lse, rows, lse, context_rows=N + 1),
    "a gradient": lambda rows, lse: ops.merge_attn_states(rows.clone().requires_grad_(), lse, rows, lse),
    "a stream": lambda rows, lse: ops.merge_attn_states(rows, lse, rows, lse, stream="main"),
    "a layout": lambda rows, lse: ops.merge_attn_states(rows, lse, rows, lse, lse_layout="h"),
    "an overlap": lambda rows, lse: ops.merge_attn_states(rows[1:], lse[:, 1:], rows[1:], lse[:, 1:], out=rows[:-1]),
    "an out_dtype": lambda rows, lse: ops.combine_split_kv(rows[None, None], lse.T[None, None], out_dtype="f64"),
    "an unhashable out_dtype": lambda rows, lse: ops.combine_split_kv(rows[None, None], lse.T[None, None], out_dtype=[]),
    "an out_dtype of integers": lambda rows, lse: ops.combine_split_kv(rows[None, None], lse.T[None, None], out_dtype="i32"),
    "partials": lambda rows, lse: flash_attn.flash_attn_combine(rows[0], lse),
    "partials' lse": lambda rows, lse: flash_attn.flash_attn_combine(rows[None, None], lse[None, None]),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_is_wrong_is_said_as_on_the_long_way(name: str, where: str) -> None:
    rows, lse = torch.randn(N, H, D, device=where), torch.randn(H, N, device=where)
    for call in merges(where).values():
        call()  # the first call creates the fast path
    errors = []
    for way in (long_way, contextlib.nullcontext):
        with way(), pytest.raises(Exception) as raised:
            WRONG[name](rows, lse)
        errors.append((raised.type, str(raised.value)))
    assert errors[0] == errors[1]


def test_modes_and_tracers_see_every_call(where: str) -> None:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    for mode in (Watching, Functions):
        for name, call in merges(where).items():
            call()
            seen.clear()
            with mode():
                call()
            assert any("mlafix" in function for function in seen), (mode, name)


@pytest.mark.filterwarnings("ignore")  # torch warns that torch.jit is deprecated
def test_tracers_see_every_call(where: str) -> None:
    v, s = torch.randn(N, 2, H, D, device=where), torch.randn(N, 2, H, device=where)
    dispatch = library.viewed("merge_states", specialize=("k",))._dispatch
    dispatch((torch.empty(N, H, D, device=where), None, v, s))
    tried = []

    def step(rows: Any) -> Any:
        tried.append(dispatch.try_launch((NewTensor(), None, v, s)))
        return rows + 1

    step(v)
    torch.jit.trace(step, (v,), check_trace=False)
    assert [outputs is None for outputs in tried] == [False, True]


def test_outputs_are_allocated_without_a_call_of_python(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    v, s = torch.randn(N, 2, H, D, device=where), torch.randn(N, 2, H, device=where)
    want = ops.merge_states(v, s)
    dispatch = library.viewed("merge_states", specialize=("k",))._dispatch
    dispatch((torch.empty(N, H, D, device=where), torch.empty(N, H, device=where), v, s))
    dispatch.try_launch((NewTensor(), NewTensor(), v, s))
    monkeypatch.delattr(torch, "empty_strided")
    got = dispatch.try_launch((NewTensor(), NewTensor(), v, s))
    assert [described(tensor) for tensor in got] == [described(tensor) for tensor in want]


def test_memory_that_runs_out_is_an_error_of_torch(where: str) -> None:
    v, s = torch.randn(N, 2, H, D, device=where), torch.randn(N, 2, H, device=where)
    dispatch = library.viewed("merge_states", specialize=("k",))._dispatch
    dispatch((torch.empty(N, H, D, device=where), torch.empty(N, H, device=where), v, s))
    n = 1 << 40  # rows of 1 KB that share one address; an output for them would exceed the address space
    with pytest.raises(RuntimeError, match="memory"):
        dispatch.try_launch((NewTensor(), NewTensor(), v[:1].expand(n, 2, H, D), s[:1].expand(n, 2, H)))


def test_the_fast_path_refuses_what_it_cannot_do(where: str) -> None:
    v, s = torch.randn(N, 2, H, D, device=where), torch.randn(N, 2, H, device=where)
    dispatch = library.viewed("merge_states", specialize=("k",))._dispatch
    # a fast path exists only after an ordinary call has resolved the kernel
    assert dispatch.try_launch((NewTensor(), NewTensor(), v, s)) is None
    dispatch((torch.empty(N, H, D, device=where), torch.empty(N, H, device=where), v, s))
    assert dispatch.try_launch((NewTensor(), NewTensor(), v, s)) is not None
    for wrong in ((NewTensor(order=(0, 1)), None, v, s), (NewTensor("i32"), None, v, s), (NewTensor(), None, NewTensor(), s),
                  (NewTensor(), None, v.cpu().numpy(), s), (NewTensor(), None, v, SizeOf(2, 0)), (NewTensor(), None, v)):
        assert dispatch.try_launch(wrong) is None
    with pytest.raises(mlafix.ArgumentError, match='argument "order": expected a permutation, got '):
        NewTensor(order=(0, 0))
    with pytest.raises(mlafix.ArgumentError, match='argument "dtype": expected a dtype of docs/UnitFormat.md, got "f99"'):
        NewTensor("f99")


def test_sizes_stand_for_integers_only_behind_their_tensor(where: str) -> None:
    rows, lse = torch.randn(N, H, D, device=where), torch.randn(H, N, device=where)
    dispatch = library.viewed("merge_attn_states")._dispatch
    out, out_lse = torch.empty_like(rows), torch.empty_like(lse)
    dispatch((out, out_lse, rows, lse, rows, lse, N))
    assert dispatch.try_launch((out, out_lse, rows, lse, rows, lse, SizeOf(2, 0))) is not None
    for arg, dim in ((-1, 0), (7, 0), (6, 0), (2, 3), (2, -1)):
        assert dispatch.try_launch((out, out_lse, rows, lse, rows, lse, SizeOf(arg, dim))) is None
    assert dispatch.try_launch((NewTensor(), out_lse, rows, lse, rows, lse, SizeOf(0, 0))) is None
