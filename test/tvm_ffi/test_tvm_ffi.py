"""Calls libraries of TVM-FFI functions from Python: results, refused calls and streams."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

tvm_ffi = pytest.importorskip("tvm_ffi")
torch = pytest.importorskip("torch")

LN2 = 0.6931471805599453


@pytest.fixture(scope="module")
def merge() -> Any:
    return tvm_ffi.load_module(os.environ["MLAFIX_TEST_MERGE"]).merge_attn_states


@pytest.fixture(scope="module")
def scale() -> Any:
    return tvm_ffi.load_module(os.environ["MLAFIX_TEST_SCALARS"]).scale_rows


def states(dtype: Any = torch.float32, dim: int = 8, device: str = "cpu") -> list[Any]:
    """Returns (prefix, its lse, suffix, its lse) with five rows of two heads. The prefix is 1.0 with weight 1, the
    suffix 4.0 with weight 2."""
    return [
        torch.full((5, 2, dim), 1.0, dtype=dtype, device=device),
        torch.zeros(2, 5, device=device),
        torch.full((5, 2, dim), 4.0, dtype=dtype, device=device),
        torch.full((2, 5), LN2, device=device),
    ]


@pytest.mark.parametrize(("dtype", "dim"), [(torch.float32, 8), (torch.float32, 16), (torch.bfloat16, 8)])
def test_the_specialisation_of_the_arguments_runs(merge: Any, dtype: Any, dim: int) -> None:
    out, lse = torch.full((5, 2, dim), torch.nan, dtype=dtype), torch.empty(2, 5)
    merge(out, lse, *states(dtype, dim), 3)
    assert torch.equal(out[:3], torch.full_like(out[:3], 3.0))
    assert torch.equal(out[3:], torch.full_like(out[3:], 4.0))
    torch.testing.assert_close(lse[:, :3], torch.full((2, 3), float(np.log(3.0))))


def test_none_omits_an_optional_argument(merge: Any) -> None:
    out = torch.empty(5, 2, 8)
    assert merge(out, None, *states(), 5) is None
    assert torch.equal(out, torch.full_like(out, 3.0))


def test_strided_tensors_and_calls_in_place(merge: Any) -> None:
    prefix, prefix_lse, suffix, _ = states()
    suffix_lse = torch.full((5, 2), LN2).t()  # [2, 5] with the heads adjacent
    merge(prefix, prefix_lse, prefix, prefix_lse, suffix, suffix_lse, 5)
    assert torch.equal(prefix, torch.full_like(prefix, 3.0))


def test_numpy_arrays(merge: Any) -> None:
    out = np.empty((5, 2, 8), np.float32)
    merge(*map(tvm_ffi.from_dlpack, (out, np.empty((2, 5), np.float32), *(array.numpy() for array in states()))), 5)
    np.testing.assert_array_equal(out, 3.0)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({0: torch.empty(5, 2, 8, dtype=torch.float16)}, ValueError, 'argument "out": expected f32 or bf16, got f16; there are the specialisations B=e,D=8,H=2'),
        ({0: torch.empty(5, 2, 9)}, ValueError, 'kernel "merge_attn_states": argument "out": expected size 8 or 16 in dim 2, got 9'),
        ({0: torch.empty(5, 16)}, ValueError, 'argument "out": expected 3 dims, got 2'),
        ({2: torch.empty(5, 2, 16)}, ValueError, 'argument "prefix": expected size 8 in dim 2, got 16'),
        ({0: 1.0}, TypeError, 'argument "out": expected a tensor, got float'),
        ({3: torch.zeros(2, 4)}, ValueError, "prefix_lse"),
        ({6: 6}, ValueError, "context_rows"),
        ({6: 2.0}, TypeError, 'argument "context_rows": expected int, got float'),
        ({1: 1.5}, TypeError, 'argument "out_lse": expected a tensor or None, got float'),
    ],
)  # fmt: skip
def test_a_wrong_call_says_what_is_wrong_and_writes_nothing(merge: Any, change: dict[int, Any], error: Any, message: str) -> None:
    out = torch.full((5, 2, 8), 7.0)
    arguments = [out, None, *states(), 3]
    for position, value in change.items():
        arguments[position] = value
    with pytest.raises(error) as raised:
        merge(*arguments)
    assert message in str(raised.value)
    assert torch.equal(out, torch.full_like(out, 7.0))


def test_the_number_of_arguments(merge: Any) -> None:
    with pytest.raises(TypeError, match="expected 7 arguments, got 2"):
        merge(torch.empty(5, 2, 8), None)


def test_every_kind_of_scalar(scale: Any) -> None:
    x, y, bias = torch.arange(12.0).reshape(3, 4), torch.empty(3, 4), torch.tensor([1.0, 2.0, 3.0])
    scale(y, x, bias, 0.5, 2, True, 3)
    assert torch.equal(y[:2], 0.5 * x[:2] + bias[:2, None])
    assert torch.equal(y[2], torch.zeros(4))
    scale(y, x, None, 2, 3, True, 3)  # an int is passed for an f32
    assert torch.equal(y, 2 * x)
    scale(y, x, None, 2.0, 3, False, 3)
    assert torch.equal(y, torch.zeros(3, 4))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({4: 2**31}, ValueError, 'argument "count": expected an integer of 32 bits, got 2147483648'),
        ({3: 1e39}, ValueError, 'argument "factor": expected a number that an f32 holds, got 1e+39'),
        ({3: "one"}, TypeError, 'argument "factor": expected float, got'),
        ({5: 1}, TypeError, 'argument "on": expected bool, got int'),
        ({0: torch.empty(3, 4, dtype=torch.complex64)}, TypeError, "expected f32, got elements of DLPack's type code 5 with 64 bits, 1 lane"),
        ({0: torch.empty(3, 4, dtype=torch.int32)}, ValueError, "expected dtype f32, got i32"),
    ],
)  # fmt: skip
def test_a_wrong_scalar_or_dtype(scale: Any, change: dict[int, Any], error: Any, message: str) -> None:
    arguments: list[Any] = [torch.empty(3, 4), torch.ones(3, 4), None, 1.0, 3, True, 3]
    for position, value in change.items():
        arguments[position] = value
    with pytest.raises(error) as raised:
        scale(*arguments)
    assert message in str(raised.value)


def test_a_tensor_of_bool_is_read_as_bytes_but_not_written() -> None:
    """A kernel may store bytes other than 0 and 1, which are no values of a bool. So an output must not be of bool."""
    copy_bytes = tvm_ffi.load_module(os.environ["MLAFIX_TEST_BYTES"]).copy_bytes
    flags, out = torch.tensor([[True, False, True, True]]), torch.full((1, 4), 7, dtype=torch.uint8)
    copy_bytes(out, flags)
    assert out.tolist() == [[1, 0, 1, 1]]
    with pytest.raises(ValueError, match='argument "y": expected dtype u8, got bool'):
        copy_bytes(flags, torch.full((1, 4), 2, dtype=torch.uint8))
    assert flags.tolist() == [[True, False, True, True]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_current_stream_of_torch_on_cuda(merge: Any) -> None:
    arguments, out = states(device="cuda"), torch.empty(5, 2, 8, device="cuda")
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    merge(out, None, *arguments, 5)  # loads the code before the capture
    torch.cuda.synchronize()
    # A graph capture records launches on its own stream, and fails if another stream gets a launch.
    with torch.cuda.graph(graph, stream=stream):
        merge(out, None, *arguments, 5)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, torch.full_like(out, 3.0))
