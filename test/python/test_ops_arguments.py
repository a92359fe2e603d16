"""Wrong calls of the public functions: an ArgumentError that names the caller's argument, what was expected and what came."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import mlafix
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, F16, F32, poison, same_bits
from right import D, H, N, Right

WRONG: list[tuple[str, Callable[[Right], dict[str, Any]], str]] = [
    ("merge_attn_states", lambda r: {"suffix": r.rows(N + 1, H, D)}, 'argument "suffix": expected size 5 .*got 6'),
    ("merge_attn_states", lambda r: {"suffix": r.rows(dtype=F16)}, 'argument "suffix": expected dtype f32.*got f16'),
    ("merge_attn_states", lambda r: {"out": r.rows(N, H)}, 'argument "out": expected 3 dims, got 2'),
    ("merge_attn_states", lambda r: {"out": r.rows(N, H, D + 1)}, 'argument "(out|prefix)": expected size .*got'),
    ("merge_attn_states", lambda r: {"out_lse": r.rows(N, H)}, 'argument "out_lse": expected size 4 .*got 5'),
    ("merge_attn_states", lambda r: {"prefix_lse": r.rows(H, N, dtype=BF16)}, 'argument "prefix_lse": expected dtype f32.*got bf16'),
    ("merge_attn_states", lambda r: {"context_rows": N + 1}, 'argument "context_rows": expected a value from 0 to 5.*got 6'),
    ("merge_attn_states", lambda r: {"context_rows": -1}, 'argument "context_rows": expected a value from 0 to 5.*got -1'),
    ("merge_attn_states", lambda r: {"context_rows": r.ints(3)}, 'argument "context_rows": expected an integer.*got'),
    ("merge_attn_states", lambda r: {"context_rows": 2.5}, 'argument "context_rows": expected an integer.*got'),
    ("merge_attn_states", lambda r: {"lse_layout": "HN"}, "argument \"lse_layout\": expected 'hn' .* got 'HN'"),
    ("merge_attn_states", lambda r: {"base": 2}, "argument \"base\": expected 'e' or '2', got 2"),
    ("merge_attn_states", lambda r: {"out": r.rows(dtype=E4M3)}, 'expected dtype f8e4m3fn, as in argument "out", got f32'),
    ("merge_attn_states", lambda r: {"out_scale": r.rows(2), "out": r.rows(dtype=E4M3)}, 'argument "out_scale": expected size 1 .*got 2'),
    ("merge_attn_states", lambda r: {"out_scale": r.rows(1)}, 'argument "out": expected dtype f8e4m3fn.*got f32'),
    ("merge_attn_states", lambda r: {"stream": "main"}, 'argument "stream": expected .*got'),
    ("merge_state_in_place", lambda r: {"mask": r.ints(1, 0, 1)}, 'argument "mask": expected dtype u8.*got i32'),
    ("merge_state_in_place", lambda r: {"mask": r.ints(1, 0, 1, dtype=np.bool_)}, 'argument "mask": expected size 5 .*got 3'),
    ("merge_state_in_place", lambda r: {"v_other": None}, 'argument "v_other": expected .*got None'),
    ("merge_attn_stats", lambda r: {"prefix_stats": r.rows(N, H)}, 'argument "prefix_stats": expected 3 dims, got 2'),
    ("merge_attn_stats", lambda r: {"prefix_stats": r.rows(N, H, 3)}, 'argument "prefix_stats": expected size 2 .*got 3'),
    ("merge_attn_stats", lambda r: {"softmax_scale": "x"}, 'argument "softmax_scale": expected a number, got str'),
    ("merge_states", lambda r: {"v": r.rows(N, H, D)}, 'argument "v": expected 4 dims .*got 3'),
    ("merge_states", lambda r: {"s": r.rows(N, 2, H)}, 'argument "s": expected size 3 .*got 2'),
    ("merge_states_ragged", lambda r: {"indptr": r.ints(0, 7)}, 'argument "indptr": expected 6 entries .*got 2'),
    ("merge_states_ragged", lambda r: {"indptr": r.ints(0, 1, 2, 3, 4, 7, dtype=np.int64)}, 'argument "indptr": expected dtype i32.*got i64'),
    ("merge_states_ragged", lambda r: {"indptr": r.ints()}, 'argument "indptr": expected at least 1 entry, got 0'),
    ("merge_states_list", lambda r: {"vs": []}, 'argument "vs": expected 1 to 8 arrays, got 0'),
    ("merge_states_list", lambda r: {"vs": [r.rows()] * 9, "ss": [r.rows(N, H)] * 9}, 'argument "vs": expected 1 to 8 arrays, got 9'),
    ("merge_states_list", lambda r: {"ss": [r.rows(N, H)]}, 'argument "ss": expected 2 arrays, as many as vs, got 1'),
    ("merge_states_list", lambda r: {"vs": [r.rows(), r.rows(N, H, D + 1)]}, r'argument "vs\[1\]": expected size 64 .*got 65'),
    ("combine_split_kv", lambda r: {"partial": r.rows()}, 'argument "partial": expected 5 dims .*got 3'),
    ("combine_split_kv", lambda r: {"out": None, "out_dtype": "int7"}, 'argument "out_dtype": expected one of .*got \'int7\''),
    ("fixup_zero_kv_rows", lambda r: {"kv_lens": r.ints(0, 1, dtype=np.int64)}, 'argument "kv_lens": expected dtype i32.*got i64'),
    ("fixup_zero_kv_rows", lambda r: {"lse": r.rows(N, H)}, 'argument "lse": expected size 4 .*got 5'),
    ("mask_empty_context_lse", lambda r: {"context_start_loc": r.ints(0)}, 'argument "context_start_loc": expected size 3 .*got 1'),
    ("mask_empty_context", lambda r: {"out": r.rows(N, H, D, dtype=np.int32)}, 'argument "out": expected dtype bf16 or f16 or f32, got i32'),
    ("fill_pad_rows", lambda r: {"live_rows": 6}, 'argument "live_rows": expected a value from 0 to 5.*got 6'),
    ("fill_pad_rows", lambda r: {"live_rows": r.ints(2, dtype=np.int64)}, 'argument "live_rows": expected dtype i32.*got i64'),
    ("expand_context_lens", lambda r: {"buffer": r.ints(*range(18))[::2]}, 'argument "buffer": expected contiguous memory'),
    ("merge_attn_states", lambda r: {"prefix": None}, 'argument "prefix": expected an array, got NoneType'),
    ("merge_attn_states", lambda r: {"prefix": [[[1.0]]], "context_rows": 1}, 'argument "prefix": expected .*got list'),
    ("merge_states_ragged", lambda r: {"indptr": [0, 1]}, 'argument "indptr": expected an array, got list'),
    ("merge_states", lambda r: {"v": 3.0}, 'argument "v": expected an array, got float'),
    ("softmax", lambda r: {"x": "x"}, 'argument "x": expected an array, got str'),
    ("fill_pad_rows", lambda r: {"live_rows": "2"}, 'argument "live_rows": expected .*got str'),
    ("clear_pad_flags", lambda r: {"flags": r.ints(1, 1)}, 'argument "flags": expected dtype bool.*got i32'),
    ("mark_prefilling", lambda r: {"prompt": r.ints(1, 1, dtype=np.int64)}, 'argument "prompt": expected dtype i32.*got i64'),
    ("expand_context_lens", lambda r: {"seq_lens": r.rows(3)}, 'argument "seq_lens": expected dtype i32.*got f32'),
    ("expand_context_lens", lambda r: {"num_decodes": 4}, 'argument "buffer": expected room for 4 x 3 = 12 lengths, got 9'),
    ("quantize_fp8_static", lambda r: {"x": r.rows(D)}, r'argument "x": expected 2 dims \[n, D\], got 1'),
    ("quantize_fp8_static", lambda r: {"out": r.rows(N, D)}, 'argument "out": expected dtype f8e4m3fn.*got f32'),
    ("rmsnorm", lambda r: {"out": r.rows(N + 1, D)}, 'argument "x": expected size 6 .*"out".*got 5'),
    ("rmsnorm", lambda r: {"weight": r.rows(D + 1)}, 'argument "weight": expected size 64 .*got 65'),
    ("softmax", lambda r: {"out": r.rows(N, D, dtype=BF16)}, 'argument "(x|out)": expected dtype .*got'),
]


@pytest.mark.parametrize("function, spoil, message", WRONG, ids=[f"{i}-{f}" for i, (f, _, _) in enumerate(WRONG)])
def test_wrong_argument(function: str, spoil: Callable[[Right], dict[str, Any]], message: str, device: Device) -> None:
    right = Right(device)
    with pytest.raises(mlafix.ArgumentError, match=message):
        right.call(function, **spoil(right))
    right.call(function)  # What is right still runs.


@pytest.mark.parametrize("function", sorted({function for function, _, _ in WRONG}))
def test_nothing_is_written_by_a_wrong_call(function: str, device: Device) -> None:
    right = Right(device)
    arguments = right.arguments(function)
    written = next(name for name in ("out", "v", "lse", "flags", "buffer", "x") if name in arguments)
    before = device.get(arguments[written]).copy()
    name, spoil = next((f, s) for f, s, _ in WRONG if f == function)
    changed = spoil(right)
    with pytest.raises(mlafix.ArgumentError):
        right.call(name, **{**arguments, **changed})
    if written not in changed:
        assert same_bits(device.get(arguments[written]), before)


def test_counts_may_be_numpys_integers(device: Device) -> None:
    right = Right(device)
    out = device.poisoned((N, H, D), F32)
    right.call("merge_attn_states", out=out, context_rows=np.int64(2))
    right.call("fill_pad_rows", out=out, live_rows=np.int32(4))
    assert np.isnan(device.get(out)).sum() == 0 and (device.get(out)[4:] == 0).all()
    assert right.call("merge_attn_states", out=device.poisoned((N, H, D), E4M3), out_scale=np.float32(2)) is not None


class Producer:
    """An array of a library that nobody knows: it has `__dlpack__`, and a shape, and that is all."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_any_dlpack_producer_will_do() -> None:
    x, out = np.arange(8, dtype=np.float32).reshape(2, 4), np.empty((2, 4), np.float32)
    returned = ops.softmax(Producer(x), out=Producer(out))
    assert isinstance(returned, Producer) and np.array_equal(out, ops.softmax(x))
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected an array, since Producer has no way to allocate'):
        ops.softmax(Producer(x))


def test_partial_overlap_is_refused(device: Device) -> None:
    """N11: an output may be an input exactly, and may share memory with none otherwise."""
    right = Right(device)
    whole = right.rows(N + 1, H, D)
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected memory apart from .*"prefix"'):
        right.call("merge_attn_states", prefix=whole[1:], out=whole[:-1])


def test_arguments_on_several_devices_are_refused() -> None:
    torch = pytest.importorskip("torch")
    right = Right(Device())
    arguments = right.arguments("merge_attn_states")
    with pytest.raises(mlafix.ArgumentError, match='argument "suffix": expected'):
        ops.merge_attn_states(**{**arguments, "suffix": torch.ones(N, H, D, device="meta")})
    if torch.cuda.is_available():
        with pytest.raises(mlafix.ArgumentError, match="expected .* on "):
            ops.merge_attn_states(**{**arguments, "suffix": torch.ones(N, H, D, device="cuda")})


def test_read_only_outputs_are_refused() -> None:
    right = Right(Device())
    out = right.rows()
    out.flags.writeable = False
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected .*got .*read-only'):
        right.call("merge_attn_states", out=out)


def test_bind_wants_its_outputs(device: Device) -> None:
    right = Right(device)
    arguments = right.arguments("merge_attn_states")
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected an array, since a bound call returns none, got None'):
        ops.merge_attn_states.bind(**{**arguments, "out": None})
    with pytest.raises(mlafix.ArgumentError, match='argument "out_lse": expected an array'):
        ops.merge_attn_states.bind(**{**arguments, "out_lse": None})
    ops.merge_attn_states.bind(**{**arguments, "out_lse": None}, return_lse=False)()


@pytest.mark.parametrize("function", sorted({function for function, _, _ in WRONG} - {"quantize_fp8_static", "rmsnorm", "softmax"}))
def test_bound_calls_do_what_plain_calls_do(function: str, device: Device) -> None:
    right = Right(device)
    plain, bound = (right.arguments(function) for _ in range(2))
    if "return_lse" in getattr(ops, function).__annotations__:
        plain["return_lse"] = bound["return_lse"] = False
    if function == "merge_attn_stats":
        plain["return_stats"] = bound["return_stats"] = False
    written = next(name for name in ("out", "v", "lse", "flags", "buffer") if name in plain)
    getattr(ops, function)(**plain)
    launch = getattr(ops, function).bind(**bound)
    launch()
    device.synchronize()
    assert same_bits(device.get(bound[written]), device.get(plain[written]))


def test_poison_is_written_by_right_calls(device: Device) -> None:
    """The table's right arguments do launch: an output full of NaN is not one afterwards."""
    right = Right(device)
    out = device.put(poison((N, H, D), F32))
    right.call("merge_attn_states", out=out)
    assert not np.isnan(device.get(out)).any()
