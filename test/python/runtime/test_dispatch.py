"""Calls through the dispatcher: every kind of tensor, views, bound calls, streams and threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from contract import merge_attn_states

import mlafix
from mlafix import _runtime

torch = pytest.importorskip("torch", reason="these calls come with torch tensors as well")

MakeDispatcher = Callable[..., _runtime.Dispatcher]
N, H, D = 5, 4, 64
BASES = dict.fromkeys(("B", "PrefixBase", "SuffixBase", "ResultBase", "MeetingBase"), "e")
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
NUMPY = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
TOLERANCE = {"bf16": 2**-8, "f16": 2**-11, "f32": 4e-6}


@pytest.fixture(scope="module")
def dispatch(merge_dispatcher: MakeDispatcher) -> _runtime.Dispatcher:
    return merge_dispatcher()


def inputs(dtype: str, n: int = N) -> list[np.ndarray]:
    """Returns random prefix, prefix_lse, suffix and suffix_lse."""
    random = np.random.default_rng(7)
    return [
        random.standard_normal(shape).astype(kind)
        for shape, kind in [((n, H, D), NUMPY[dtype]), ((H, n), np.float32)] * 2
    ]


def merged(prefix: np.ndarray, prefix_lse: np.ndarray, suffix: np.ndarray, suffix_lse: np.ndarray,
           rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the expected out [n, H, D] and lse [H, n], in f64."""
    out, lse = merge_attn_states(prefix, prefix_lse.T, suffix, suffix_lse.T, rows)
    return out.value, lse.value.T


def assert_merged(dtype: str, out: np.ndarray, lse: np.ndarray | None, given: list[np.ndarray], rows: int) -> None:
    want, want_lse = merged(*given, rows)
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    if lse is not None:
        np.testing.assert_allclose(lse, want_lse, rtol=1e-5, atol=1e-5)


def to_torch(array: np.ndarray) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def from_torch(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


class Producer:
    """A tensor that only supports DLPack. If `versioned` is false, its __dlpack__ does not accept `max_version`, like
    producers before DLPack 1.0."""

    def __init__(self, tensor: torch.Tensor, versioned: bool = True) -> None:
        self.tensor = tensor
        self.versioned = versioned
        self.asked: list[dict] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options: object) -> object:
        self.asked.append(options)
        if "max_version" in options and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.tensor.__dlpack__(**options)


@pytest.mark.parametrize("dtype", TORCH)
def test_numpy_arrays(dispatch: _runtime.Dispatcher, dtype: str) -> None:
    given = inputs(dtype)
    out, lse = np.full((N, H, D), np.nan, NUMPY[dtype]), np.full((H, N), np.nan, np.float32)
    assert dispatch((out, lse, *given, 3)) is None
    assert_merged(dtype, out, lse, given, 3)


@pytest.mark.parametrize("dtype", TORCH)
def test_torch_tensors(dispatch: _runtime.Dispatcher, dtype: str) -> None:
    given = inputs(dtype)
    out, lse = torch.full((N, H, D), torch.nan, dtype=TORCH[dtype]), torch.full((H, N), torch.nan)
    dispatch((out, lse, *map(to_torch, given), 3))
    assert_merged(dtype, from_torch(out), lse.numpy(), given, 3)


def test_torch_parameters_below_no_grad(dispatch: _runtime.Dispatcher) -> None:
    given = inputs("f32")
    out = torch.full((N, H, D), torch.nan)
    with torch.no_grad():
        dispatch((out, None, torch.nn.Parameter(to_torch(given[0])), *map(to_torch, given[1:]), 2))
    assert_merged("f32", out.numpy(), None, given, 2)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_producers(dispatch: _runtime.Dispatcher, versioned: bool) -> None:
    given = inputs("bf16")
    out = torch.full((N, H, D), torch.nan, dtype=torch.bfloat16)
    args = [Producer(tensor, versioned) for tensor in (out, *map(to_torch, given))]
    dispatch((args[0], None, *args[1:], N))
    assert_merged("bf16", from_torch(out), None, given, N)
    assert all(arg.asked[-1]["stream"] is None for arg in args)


def test_optional_argument_omitted(dispatch: _runtime.Dispatcher) -> None:
    given = inputs("f32")
    out = np.full((N, H, D), np.nan, np.float32)
    dispatch((out, None, *given, 3))
    assert_merged("f32", out, None, given, 3)


def test_in_place(dispatch: _runtime.Dispatcher) -> None:
    given = inputs("bf16")
    prefix, prefix_lse, suffix, suffix_lse = map(to_torch, given)
    dispatch((prefix, prefix_lse, prefix, prefix_lse, suffix, suffix_lse, 3))
    assert_merged("bf16", from_torch(prefix), prefix_lse.numpy(), given, 3)


def test_strided_tensors(dispatch: _runtime.Dispatcher) -> None:
    given = inputs("f32")
    wide = torch.full((N, H, 3 * D), torch.nan)
    lse = torch.full((N, H), torch.nan)
    dispatch((wide[..., D : 2 * D], lse.T, *map(to_torch, given), 3))
    assert_merged("f32", wide[..., D : 2 * D].numpy(), lse.T.numpy(), given, 3)
    assert wide[..., :D].isnan().all() and wide[..., 2 * D :].isnan().all()


def test_no_rows(dispatch: _runtime.Dispatcher) -> None:
    out = np.full((1, H, D), 7, np.float32)
    dispatch((out[:0], None, *inputs("f32", 0), 0))
    assert (out == 7).all()


def test_views_permute_dims(merge_dispatcher: MakeDispatcher) -> None:
    by_row = {name: (1, 0) for name in ("out_lse", "prefix_lse", "suffix_lse")}
    dispatch = merge_dispatcher(views=by_row)
    given = inputs("f32")
    prefix, prefix_lse, suffix, suffix_lse = given
    out, lse = np.full((N, H, D), np.nan, np.float32), np.full((N, H), np.nan, np.float32)
    dispatch((out, lse, prefix, prefix_lse.T.copy(), suffix, suffix_lse.T.copy(), 3))
    assert_merged("f32", out, lse.T, given, 3)


def test_resolved_once_for_each_combination(
    merge_dispatcher: MakeDispatcher, compile_unit: Callable[..., Path]
) -> None:
    asked: list[dict[str, str]] = []

    def resolve(bindings: dict[str, str], device_type: int, ordinal: int) -> _runtime.Unit:
        asked.append(bindings)
        return mlafix.Unit.load(compile_unit("merge_attn_states", ",".join(f"{k}={v}" for k, v in bindings.items())))

    dispatch = merge_dispatcher(resolve=resolve)
    for _ in range(3):
        for dtype in ("bf16", "f32"):
            dispatch((np.empty((N, H, D), NUMPY[dtype]), None, *inputs(dtype), 0))
        dispatch((np.empty((2, H, D), np.float32), None, *inputs("f32", 2), 0))
        dispatch((np.empty((2, H, D), np.float32), np.empty((H, 2), np.float32), *inputs("f32", 2), 0))
    sizes = {"H": "4", "D": "64"}
    assert asked == [
        {"T": "bf16", **sizes, "out_lse": "absent"},
        {"T": "f32", **sizes, "out_lse": "absent"},
        {"T": "f32", **sizes, "out_lse": "present"},
    ]
    assert dispatch.num_specializations == 3
    dispatch.clear()
    assert dispatch.num_specializations == 0


@pytest.mark.parametrize("given", [False, True])
def test_code_with_open_arguments_runs_every_call(
    merge_dispatcher: MakeDispatcher, compile_unit: Callable[..., Path], given: bool
) -> None:
    unit = mlafix.Unit.load(compile_unit("merge_attn_states", f"H={H},D={D},T=f32"))
    dispatch = merge_dispatcher(resolve=lambda *_: unit)
    tensors = inputs("f32")
    out, lse = np.full((N, H, D), np.nan, np.float32), np.full((H, N), np.nan, np.float32) if given else None
    dispatch((out, lse, *tensors, 3))
    assert_merged("f32", out, lse, tensors, 3)
    assert dispatch.prepare((out, lse, *tensors, 3)).bindings == {**BASES, "D": "64", "H": "4", "T": "f32"}


def test_code_for_other_arguments_says_so(merge_dispatcher: MakeDispatcher, compile_unit: Callable[..., Path]) -> None:
    unit = mlafix.Unit.load(compile_unit("merge_attn_states", f"H={H},D={D},T=f32,out_lse=absent"))
    lse = np.empty((H, N), np.float32)
    with pytest.raises(mlafix.ArgumentError, match='"out_lse": expected null, since this specialisation binds'):
        merge_dispatcher(resolve=lambda *_: unit)((np.empty((N, H, D), np.float32), lse, *inputs("f32"), 3))


def test_what_resolve_raises_reaches_the_caller(merge_dispatcher: MakeDispatcher) -> None:
    def refuse(bindings: dict[str, str], device_type: int, ordinal: int) -> _runtime.Unit:
        raise mlafix.CompileError("no compiler today")

    args = (np.empty((N, H, D), np.float32), None, *inputs("f32"), 0)
    with pytest.raises(mlafix.CompileError, match="no compiler today"):
        merge_dispatcher(resolve=refuse)(args)
    with pytest.raises(mlafix.UnitError, match="expected a Unit or a KernelInfo from resolve, got int"):
        merge_dispatcher(resolve=lambda *_: 3)(args)


def test_bound_call(dispatch: _runtime.Dispatcher) -> None:
    given = inputs("bf16")
    out, lse = torch.full((N, H, D), torch.nan, dtype=torch.bfloat16), torch.full((H, N), torch.nan)
    bound = dispatch.bind((out, lse, *map(to_torch, given), 3))
    assert bound.launch_info["rows"] == N * H
    for _ in range(2):
        out.fill_(torch.nan)
        bound()
        assert_merged("bf16", from_torch(out), lse.numpy(), given, 3)


def test_bound_call_keeps_its_tensors_alive(dispatch: _runtime.Dispatcher) -> None:
    given = inputs("f32")
    out = np.full((N, H, D), np.nan, np.float32)
    bound = dispatch.bind((out, None, *(array.copy() for array in given), 3))
    gc.collect()
    bound(None)
    assert_merged("f32", out, None, given, 3)


def test_bound_call_takes_new_pointers(dispatch: _runtime.Dispatcher) -> None:
    given = inputs("f32")
    bound = dispatch.bind((np.empty((N, H, D), np.float32), None, *given, 3))
    out = np.full((N, H, D), np.nan, np.float32)
    swapped = [given[2], given[3], given[0], given[1]]
    bound.set_pointers((out.ctypes.data, None, *swapped, 1))
    bound()
    assert_merged("f32", out, None, swapped, 1)
    bound.set_pointers((out, None, *given, 4))
    bound()
    assert_merged("f32", out, None, given, 4)


@pytest.mark.parametrize(
    "index, value, message",
    [
        (0, np.empty((N, H, D), np.float16), 'argument "out": expected dtype f32, as when it was bound, got f16'),
        (0, np.empty((N + 1, H, D), np.float32), r'argument "out": expected sizes \[5, 4, 64\] .* got sizes \[6, 4, 64\]'),
        (1, np.empty((H, N), np.float32), 'argument "out_lse": expected None, as when it was bound, got numpy.ndarray'),
        (0, None, 'argument "out": expected a tensor of dtype T, as when it was bound, got None'),
        (0, -1, 'argument "out": expected a tensor or an address, got -1'),
        (0, 1, 'argument "out": expected a data pointer that is a multiple of 4'),
        (6, N + 1, 'argument "context_rows": expected a value from 0 to 5'),
    ],
)
def test_bound_call_refuses_other_tensors(
    dispatch: _runtime.Dispatcher, index: int, value: object, message: str
) -> None:
    given = inputs("f32")
    out = np.full((N, H, D), np.nan, np.float32)
    args = (out, None, *given, 3)
    bound = dispatch.bind(args)
    unused = np.full((N, H, D), np.nan, np.float32)
    others = (unused, *args[1:])
    with pytest.raises(mlafix.ArgumentError, match=message):
        bound.set_pointers((*others[:index], value, *others[index + 1 :]))
    with pytest.raises(mlafix.ArgumentError, match="expected a tuple of arguments, got int"):
        bound.set_pointers(3)
    bound()
    assert_merged("f32", out, None, given, 3)
    assert np.isnan(unused).all()


def test_threads_share_a_dispatcher(merge_dispatcher: MakeDispatcher) -> None:
    dispatch = merge_dispatcher()
    n = 2048  # so many rows that other threads run during a launch
    given = inputs("f32", n)
    outs = [np.full((n, H, D), np.nan, np.float32) for _ in range(8)]
    threads = [threading.Thread(target=dispatch, args=((out, None, *given, n // 2),)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outs:
        assert_merged("f32", out, None, given, n // 2)


def test_bound_call_does_not_change_while_a_thread_launches_it(dispatch: _runtime.Dispatcher) -> None:
    n = 2048
    args = (np.empty((n, H, D), np.float32), None, *inputs("f32", n), n)
    bound = dispatch.bind(args)
    done, refused = threading.Event(), 0

    def launch() -> None:
        while not done.is_set():
            bound()

    thread = threading.Thread(target=launch)
    thread.start()
    for _ in range(2000):
        try:
            bound.set_pointers(args)
        except mlafix.ArgumentError as error:
            assert "another thread launches now" in str(error)
            refused += 1
        if refused:
            break
    done.set()
    thread.join()
    assert refused, "expected a launch to be under way at some time"
    bound.set_pointers(args)


def test_cpu_launches_take_no_stream(dispatch: _runtime.Dispatcher) -> None:
    args = (np.empty((N, H, D), np.float32), None, *inputs("f32"), 0)
    dispatch(args, 0)
    dispatch(args, None)
    with pytest.raises(mlafix.ArgumentError, match='argument "stream": expected null for a launch on the cpu'):
        dispatch(args, 16)


@pytest.mark.parametrize("stream", ["7", 1.5, True, -1, object()])
def test_what_is_no_stream(dispatch: _runtime.Dispatcher, stream: object) -> None:
    args = (np.empty((N, H, D), np.float32), None, *inputs("f32"), 0)
    with pytest.raises(mlafix.ArgumentError, match='argument "stream": expected None, the integer handle'):
        dispatch(args, stream)


def test_prepare_launches_nothing(dispatch: _runtime.Dispatcher) -> None:
    out = np.full((N, H, D), np.nan, np.float32)
    kernel = dispatch.prepare((out, None, *inputs("f32"), 3))
    assert kernel.bindings == {**BASES, "D": "64", "H": "4", "T": "f32", "out_lse": "absent"}
    assert np.isnan(out).all()


def test_collected_with_what_it_is_part_of(merge_dispatcher: MakeDispatcher) -> None:
    class Owner:
        def __init__(self) -> None:
            self.dispatch = merge_dispatcher(resolve=self.resolve)

        def resolve(self, *_: object) -> _runtime.Unit:
            raise AssertionError

        def __del__(self) -> None:
            gone.append(True)

    gone: list[bool] = []
    Owner()
    gc.collect()
    assert gone
