"""Tests wrong calls of the public functions. Each must raise an ArgumentError with the caller's argument, the expected
value and the actual one."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import numpy as np
import pytest

import mlafix
from calls import CALLS, FUNCTION_OF, FUNCTIONS, WRONG, D, H, N, Right, arrays
from devices import Device
from mlafix import ops
from numerics import E4M3, F32, poison, same_bits


@pytest.fixture
def device(library_device: Device) -> Device:
    """Runs these tests on each kind of array, since messages describe the passed arrays."""
    return library_device


@pytest.mark.parametrize("function, spoil, message", WRONG, ids=[f"{i}-{f}" for i, (f, _, _) in enumerate(WRONG)])
def test_wrong_argument(function: str, spoil: Callable[[Right], dict[str, Any]], message: str, device: Device) -> None:
    right = Right(device)
    right.refuses(function, message, **spoil(right))


@pytest.mark.parametrize("function", sorted({function for function, _, _ in WRONG}))
def test_nothing_is_written_by_a_wrong_call(function: str, device: Device) -> None:
    right = Right(device)
    arguments = right.arguments(function)
    written = next(name for name in ("out", "v", "lse", "flags", "buffer", "x", "cache", "seq_lens") if name in arguments)
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
    assert np.isnan(device.get(out)).sum() == 0
    assert right.call("merge_attn_states", out=device.poisoned((N, H, D), E4M3), out_format=ops.Fp8(np.float32(2))) is not None


class Producer:
    """An array of an unknown library. It has only a shape and the two methods of DLPack."""

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
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected an array, since Producer cannot allocate'):
        ops.softmax(Producer(x))


def test_partial_overlap_is_refused(device: Device) -> None:
    """N11: an output may be the same tensor as an input, but must not overlap an input in part."""
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
    with pytest.raises(mlafix.ArgumentError, match=r'argument "out": expected an array in bind\(\), since bound calls allocate nothing, got None'):
        ops.merge_attn_states.bind(**{**arguments, "out": None})
    with pytest.raises(mlafix.ArgumentError, match='argument "out_lse": expected an array'):
        ops.merge_attn_states.bind(**{**arguments, "out_lse": None})
    with pytest.raises(mlafix.ArgumentError, match=r'argument "out": expected an array in bind\(\), since bound calls allocate nothing'):
        ops.quantize_groups.bind(**{**right.arguments("quantize_groups"), "out": None})
    ops.merge_attn_states.bind(**{**arguments, "out_lse": None}, return_lse=False)()


def test_bind_takes_the_arguments_of_the_call_less_the_stream() -> None:
    for function in FUNCTIONS:
        operation = getattr(ops, function)
        assert list(inspect.signature(operation.bind).parameters) == list(inspect.signature(operation).parameters)[:-1]
        with pytest.raises(TypeError, match=f"{function}.bind.* 'stream'"):
            operation.bind(**Right(Device()).arguments(function), stream=None)


@pytest.mark.parametrize("kernel", CALLS)
def test_bound_calls_do_what_plain_calls_do(kernel: str, device: Device) -> None:
    """A bound call writes nothing before it is launched, and then the bits of a plain call."""
    right, function = Right(device), getattr(ops, FUNCTION_OF[kernel])
    plain, bound = (right.arguments(kernel) for _ in range(2))
    for flag in {"return_lse", "return_stats"} & set(function.__annotations__):
        plain[flag] = bound[flag] = False
    launch = function.bind(**bound)
    for call in (lambda: None, lambda: (function(**plain), launch())):
        call()
        assert all(same_bits(device.get(a), device.get(b)) for a, b in zip(arrays(plain), arrays(bound), strict=True))


def test_poison_is_written_by_right_calls(device: Device) -> None:
    """A valid call writes its output. Otherwise the tests that wrong calls write nothing would prove nothing."""
    right = Right(device)
    out = device.put(poison((N, H, D), F32))
    right.call("merge_attn_states", out=out)
    assert not np.isnan(device.get(out)).any()


X, LSE, STARTS = np.ones((3, 2, 64), np.float32), np.zeros((3, 2), np.float32), np.array([0, 2, 4], np.int32)
MIXED = dict(v=np.ones((3, 2, 2, 64), np.float32), s=np.zeros((3, 2, 2), np.float32))
ROPE = ops.Rope(np.zeros(3, np.int64), np.ones((2, 8), np.float32))
OTHER_KINDS: dict[str, tuple[Any, str]] = {
    "integers with rope": (lambda: ops.merge_states(**{**MIXED, "v": MIXED["v"].astype(np.int8)}, out=X.copy(), rope=ROPE), "v"),
    "integers with sinks": (lambda: ops.combine_split_kv(np.ones((2, 1, 1, 2, 64), np.int8), np.zeros((2, 1, 1, 2), np.float32),
                                                         sinks=np.zeros(2, np.float32), out_dtype="f32"), "partial"),
    "a list as a layout": (lambda: ops.merge_attn_states(X, LSE, X, LSE, lse_layout=[]), "lse_layout"),  # type: ignore[arg-type]
    "a list as a base": (lambda: ops.merge_states(**MIXED, base=[]), "base"),  # type: ignore[arg-type]
    "an array as a flag": (lambda: ops.merge_attn_states(X, LSE, X, LSE, lse_layout="nh", return_lse=np.zeros(3)), "return_lse"),  # type: ignore[arg-type]
    "a flag as a count": (lambda: ops.expand_context_lens(np.zeros(16, np.int32), STARTS, True, 3), "num_decodes"),
    "a flag as a length": (lambda: ops.pack_rows(np.zeros((4, 8), np.float32), STARTS, True), "length"),
    "a length of more than 64 bits": (lambda: ops.pack_rows(np.zeros((4, 8), np.float32), STARTS, 1 << 70), "length"),
    "a size of more than 64 bits": (lambda: ops.is_prefilling(STARTS, STARTS, padded=1 << 70), "padded"),
    "an array as a rank": (lambda: ops.lens_of_rank(STARTS, np.zeros(3), 2), "rank"),  # type: ignore[arg-type]
    "tokens of all ranks of more than 64 bits": (lambda: ops.lens_of_rank(STARTS, 0, 2, interleave=2**62), "interleave"),
    "an array as a size": (lambda: ops.chunks_with_zero_kv([3], chunk_size=np.zeros(3)), "chunk_size"),  # type: ignore[arg-type]
    "objects": (lambda: ops.zero_blocks(np.zeros((4, 8), object), np.zeros(1, np.int64)), "cache"),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_an_argument_of_another_kind_is_an_argument_error(kind: str) -> None:
    call, name = OTHER_KINDS[kind]
    ops.merge_attn_states(X, LSE, X, LSE, lse_layout="nh")  # from here on, calls take the fast path
    with pytest.raises(mlafix.ArgumentError, match=rf'^argument "{name}": expected .*, got '):
        call()


def test_tensors_of_other_kinds_are_argument_errors() -> None:
    torch = pytest.importorskip("torch")
    meta, sparse = torch.empty((3, 64), device="meta"), torch.zeros(3, 64).to_sparse()
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected a torch.Tensor, as argument "x", got ndarray'):
        ops.softmax(meta, out=np.zeros((3, 64), np.float32))
    with pytest.raises(mlafix.ArgumentError, match='argument "weight": expected a torch.Tensor, as argument "x", got ndarray'):
        ops.rmsnorm(meta, np.zeros(64, np.float32))
    with pytest.raises(mlafix.ArgumentError, match='argument "x": expected a tensor with strides, got one of layout torch.sparse_coo'):
        ops.quantize_fp8_static(sparse, 0.5)
    with pytest.raises(mlafix.ArgumentError, match='argument "kv_lens": expected integers on the host, got Tensor'):
        ops.chunks_with_zero_kv(torch.zeros(2, 3, dtype=torch.int64).to_sparse())


def test_an_error_names_arguments_that_were_passed(device: Device) -> None:
    """An error names only arguments that the caller passed, never an output that the call would have allocated."""
    right = Right(device)
    with pytest.raises(mlafix.ArgumentError, match='argument "weight": expected size 64 .*as in argument "x", got 65'):
        ops.rmsnorm(right.rows(N, D), right.rows(D + 1))
    with pytest.raises(mlafix.ArgumentError, match='argument "suffix": expected size 5 .*as in argument "prefix", got 6'):
        right.call("merge_attn_states", suffix=right.rows(N + 1, H, D), out=None)
