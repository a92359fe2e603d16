"""Calls through the dispatcher: every kind of tensor, views, bound calls, streams and threads. Tests of ops make calls in
place, on strided tensors and without rows."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from contract import merge_attn_states
from devices import Device, TorchDevice
from numerics import BF16, F16, F32

import mlafix
from mlafix import _runtime

torch = pytest.importorskip("torch", reason="these calls come with torch tensors as well")

MakeDispatcher = Callable[..., _runtime.Dispatcher]
N, H, D = 5, 4, 64
BASES = dict.fromkeys(("B", "PrefixBase", "SuffixBase", "ResultBase", "MeetingBase"), "e")
TORCH = TorchDevice("cpu")


@pytest.fixture(scope="module")
def dispatch(merge_dispatcher: MakeDispatcher) -> _runtime.Dispatcher:
    return merge_dispatcher()


def inputs(dtype: np.dtype = F32, n: int = N) -> list[np.ndarray]:
    """Returns random prefix, prefix_lse, suffix and suffix_lse."""
    random = np.random.default_rng(7)
    return [random.standard_normal(shape).astype(kind) for shape, kind in [((n, H, D), dtype), ((H, n), F32)] * 2]


def assert_merged(out: np.ndarray, lse: np.ndarray | None, given: list[np.ndarray], rows: int) -> None:
    prefix, prefix_lse, suffix, suffix_lse = given
    want, want_lse = merge_attn_states(prefix, prefix_lse.T, suffix, suffix_lse.T, rows, out_dtype=out.dtype)
    want.check(out, "out")
    if lse is not None:
        want_lse.check(lse.T, "out_lse")


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


@pytest.mark.parametrize("device", [Device(), TORCH], ids=lambda device: device.name)
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_arrays_and_tensors(dispatch: _runtime.Dispatcher, dtype: np.dtype, device: Device) -> None:
    given = inputs(dtype)
    out, lse = device.poisoned((N, H, D), dtype), device.poisoned((H, N), F32)
    assert dispatch((out, lse, *map(device.put, given), 3)) is None
    assert_merged(device.get(out), device.get(lse), given, 3)


def test_torch_parameters_below_no_grad(dispatch: _runtime.Dispatcher) -> None:
    given = inputs()
    out = torch.full((N, H, D), torch.nan)
    with torch.no_grad():
        dispatch((out, None, torch.nn.Parameter(TORCH.put(given[0])), *map(TORCH.put, given[1:]), 2))
    assert_merged(out.numpy(), None, given, 2)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_producers(dispatch: _runtime.Dispatcher, versioned: bool) -> None:
    given = inputs(BF16)
    out = torch.full((N, H, D), torch.nan, dtype=torch.bfloat16)
    args = [Producer(tensor, versioned) for tensor in (out, *map(TORCH.put, given))]
    dispatch((args[0], None, *args[1:], N))
    assert_merged(TORCH.get(out), None, given, N)
    assert all(arg.asked[-1]["stream"] is None for arg in args)


def test_views_permute_dims(merge_dispatcher: MakeDispatcher) -> None:
    by_row = {name: (1, 0) for name in ("out_lse", "prefix_lse", "suffix_lse")}
    dispatch = merge_dispatcher(views=by_row)
    given = inputs()
    prefix, prefix_lse, suffix, suffix_lse = given
    out, lse = np.full((N, H, D), np.nan, np.float32), np.full((N, H), np.nan, np.float32)
    dispatch((out, lse, prefix, prefix_lse.T.copy(), suffix, suffix_lse.T.copy(), 3))
    assert_merged(out, lse.T, given, 3)


def test_resolved_once_for_each_combination(
    merge_dispatcher: MakeDispatcher, compile_unit: Callable[..., Path]
) -> None:
    asked: list[dict[str, str]] = []

    def resolve(bindings: dict[str, str], device_type: int, ordinal: int) -> _runtime.Unit:
        asked.append(bindings)
        return mlafix.Unit.load(compile_unit("merge_attn_states", ",".join(f"{k}={v}" for k, v in bindings.items())))

    dispatch = merge_dispatcher(resolve=resolve)
    for _ in range(3):
        for dtype in (BF16, F32):
            dispatch((np.empty((N, H, D), dtype), None, *inputs(dtype), 0))
        dispatch((np.empty((2, H, D), np.float32), None, *inputs(n=2), 0))
        dispatch((np.empty((2, H, D), np.float32), np.empty((H, 2), np.float32), *inputs(n=2), 0))
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
    tensors = inputs()
    out, lse = np.full((N, H, D), np.nan, np.float32), np.full((H, N), np.nan, np.float32) if given else None
    dispatch((out, lse, *tensors, 3))
    assert_merged(out, lse, tensors, 3)
    assert dispatch.prepare((out, lse, *tensors, 3)).bindings == {**BASES, "D": "64", "H": "4", "T": "f32"}


def test_code_for_other_arguments_says_so(merge_dispatcher: MakeDispatcher, compile_unit: Callable[..., Path]) -> None:
    unit = mlafix.Unit.load(compile_unit("merge_attn_states", f"H={H},D={D},T=f32,out_lse=absent"))
    lse = np.empty((H, N), np.float32)
    with pytest.raises(mlafix.ArgumentError, match='"out_lse": expected null, since this specialisation binds'):
        merge_dispatcher(resolve=lambda *_: unit)((np.empty((N, H, D), np.float32), lse, *inputs(), 3))


def test_what_resolve_raises_reaches_the_caller(merge_dispatcher: MakeDispatcher) -> None:
    def refuse(bindings: dict[str, str], device_type: int, ordinal: int) -> _runtime.Unit:
        raise mlafix.CompileError("no compiler today")

    args = (np.empty((N, H, D), np.float32), None, *inputs(), 0)
    with pytest.raises(mlafix.CompileError, match="no compiler today"):
        merge_dispatcher(resolve=refuse)(args)
    with pytest.raises(mlafix.UnitError, match="expected a Unit or a KernelInfo from resolve, got int"):
        merge_dispatcher(resolve=lambda *_: 3)(args)


def test_bound_call(dispatch: _runtime.Dispatcher) -> None:
    given = inputs(BF16)
    out, lse = torch.full((N, H, D), torch.nan, dtype=torch.bfloat16), torch.full((H, N), torch.nan)
    bound = dispatch.bind((out, lse, *map(TORCH.put, given), 3))
    assert bound.launch_info["rows"] == N * H
    for _ in range(2):
        out.fill_(torch.nan)
        bound()
        assert_merged(TORCH.get(out), lse.numpy(), given, 3)


def test_bound_call_keeps_its_tensors_alive(dispatch: _runtime.Dispatcher) -> None:
    given = inputs()
    out = np.full((N, H, D), np.nan, np.float32)
    bound = dispatch.bind((out, None, *(array.copy() for array in given), 3))
    gc.collect()
    bound(None)
    assert_merged(out, None, given, 3)


def test_bound_call_takes_new_pointers(dispatch: _runtime.Dispatcher) -> None:
    given = inputs()
    bound = dispatch.bind((np.empty((N, H, D), np.float32), None, *given, 3))
    out = np.full((N, H, D), np.nan, np.float32)
    swapped = [given[2], given[3], given[0], given[1]]
    bound.set_pointers((out.ctypes.data, None, *swapped, 1))
    bound()
    assert_merged(out, None, swapped, 1)
    bound.set_pointers((out, None, *given, 4))
    bound()
    assert_merged(out, None, given, 4)


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
    given = inputs()
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
    assert_merged(out, None, given, 3)
    assert np.isnan(unused).all()


def test_threads_share_a_dispatcher(merge_dispatcher: MakeDispatcher) -> None:
    dispatch = merge_dispatcher()
    n = 2048  # so many rows that other threads run during a launch
    given = inputs(n=n)
    outs = [np.full((n, H, D), np.nan, np.float32) for _ in range(8)]
    threads = [threading.Thread(target=dispatch, args=((out, None, *given, n // 2),)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outs:
        assert_merged(out, None, given, n // 2)


def test_bound_call_does_not_change_while_a_thread_launches_it(dispatch: _runtime.Dispatcher) -> None:
    n = 2048
    args = (np.empty((n, H, D), np.float32), None, *inputs(n=n), n)
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
    args = (np.empty((N, H, D), np.float32), None, *inputs(), 0)
    dispatch(args, 0)
    dispatch(args, None)
    with pytest.raises(mlafix.ArgumentError, match='argument "stream": expected null for a launch on the cpu'):
        dispatch(args, 16)


@pytest.mark.parametrize("stream", ["7", 1.5, True, -1, object()])
def test_what_is_no_stream(dispatch: _runtime.Dispatcher, stream: object) -> None:
    args = (np.empty((N, H, D), np.float32), None, *inputs(), 0)
    with pytest.raises(mlafix.ArgumentError, match='argument "stream": expected None, the integer handle'):
        dispatch(args, stream)


def test_prepare_launches_nothing(dispatch: _runtime.Dispatcher) -> None:
    out = np.full((N, H, D), np.nan, np.float32)
    kernel = dispatch.prepare((out, None, *inputs(), 3))
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
