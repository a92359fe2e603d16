"""Calls with wrong arguments raise an ArgumentError that names the argument, what was expected, and what was passed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mlafix
from mlafix import _runtime

torch = pytest.importorskip("torch", reason="these calls come with torch tensors as well")

MakeDispatcher = Callable[..., _runtime.Dispatcher]
N, H, D = 5, 4, 64
NAMES = ["out", "out_lse", "prefix", "prefix_lse", "suffix", "suffix_lse", "context_rows"]


@pytest.fixture(scope="module")
def dispatch(merge_dispatcher: MakeDispatcher) -> _runtime.Dispatcher:
    return merge_dispatcher()


def arguments(**changed: object) -> tuple:
    """Returns valid arguments of a call on numpy arrays, with the given changes."""
    args = {name: np.ones((H, N) if "lse" in name else (N, H, D), np.float32) for name in NAMES}
    args["context_rows"] = 3
    return tuple({**args, **changed}.values())


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def rows(dtype: type = np.float32, shape: tuple[int, ...] = (N, H, D)) -> np.ndarray:
    return np.ones(shape, dtype)


def misaligned() -> np.ndarray:
    return np.zeros(N * H * D * 4 + 1, np.uint8)[1:].view(np.float32).reshape(N, H, D)


class Broken:
    """Claims to support DLPack, but gives `capsule` when asked for a tensor, or raises if that is None."""

    def __init__(self, capsule: object = None) -> None:
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: object) -> object:
        if self.capsule is None:
            raise RuntimeError("out of order")
        return self.capsule


def big_endian() -> np.ndarray:
    return np.ones((N, H, D), ">f4")


DTYPES = "expected a tensor of dtype T .bf16, f16, f32, f8e4m3fn, f8e5m2, f8e8m0; there are no other floats., got dtype "

WRONG_NUMPY = [
    ("prefix", lambda: rows(np.float64), DTYPES + "float64"),
    ("prefix", lambda: rows(np.complex64), DTYPES + "complex64"),
    ("prefix", lambda: rows(np.uint16), DTYPES + "uint16"),
    ("prefix", big_endian, DTYPES + ">f4"),
    ("prefix", lambda: rows(np.float16), 'expected dtype f32, as in argument "out", got f16'),
    ("prefix_lse", lambda: rows(np.float16, (H, N)), "expected dtype f32, got f16"),
    ("prefix", lambda: rows(shape=(N, H)), 'expected 3 dims, got 2; the dims are "n H D"'),
    ("prefix", lambda: rows(shape=(1,) * 9), "expected at most 8 dims, got 9"),
    ("prefix", lambda: rows(shape=(N, 2 * H, D)), r'expected size 4 in dim 1 \("H"\), as in argument "out", got 8'),
    ("prefix", lambda: rows(shape=(N + 1, H, D)), r'expected size 5 in dim 0 \("n"\), as in argument "out", got 6'),
    ("out", lambda: rows(shape=(N, H, 0)), r'expected a size of at least 1 in dim 2 \("D"\), got 0'),
    ("prefix", lambda: rows(shape=(N, H, 2 * D))[..., ::2], r'expected stride 1 in dim 2 \("D"\), got 2; a contiguous copy has it, as .contiguous\(\) of a torch tensor'),
    ("out", lambda: rows(shape=(N, H, 2 * D))[..., ::2], r'expected stride 1 in dim 2 \("D"\), got 2$'),
    ("prefix", misaligned, "expected a data pointer that is a multiple of 4"),
    ("out", lambda: read_only(rows()), "expected a tensor that may be written, got a read-only one"),
    ("out", lambda: np.broadcast_to(np.ones(D, np.float32), (N, H, D)), "expected a tensor that may be written"),
    ("prefix", lambda: None, "expected a tensor of dtype T, got None"),
    ("prefix", lambda: [1.0, 2.0], "expected a tensor of dtype T .a numpy array, .* got list"),
    ("prefix", lambda: "prefix", "got str"),
    ("prefix", lambda: Broken(), "expected a tensor of dtype T, got .*Broken, whose __dlpack__ failed: out of order"),
    ("prefix", lambda: Broken(3), "expected a DLPack capsule from __dlpack__ of .*Broken, got int"),
    ("context_rows", lambda: 2.0, "expected an integer, got float"),
    ("context_rows", lambda: True, "expected an integer, got bool"),
    ("context_rows", lambda: None, "expected an integer, got NoneType"),
    ("context_rows", lambda: torch.tensor(3), "expected an integer, got torch.Tensor"),
    ("context_rows", lambda: 2**64, "expected an integer of 64 bits, got 18446744073709551616"),
    ("context_rows", lambda: -1, 'expected a value from 0 to 5, the size of dim "n", got -1'),
    ("context_rows", lambda: N + 1, 'expected a value from 0 to 5, the size of dim "n", got 6'),
]

WRONG_TORCH = [
    ("prefix", lambda: torch.ones(N, H, D, dtype=torch.float64), DTYPES + "float64"),
    ("prefix", lambda: torch.ones(N, H, D, dtype=torch.complex64).conj(), "got dtype complex64"),
    ("prefix", lambda: torch.ones(N, H, D).to(torch.float8_e5m2fnuz), "got a dtype of DLPack code 13, 8 bits"),
    ("prefix", lambda: torch.ones(N, H, D, requires_grad=True), "expected a tensor that autograd does not follow"),
    ("prefix", lambda: torch.ones(N, H, D, device="meta"), r"expected a tensor on a CPU or CUDA device, got one on meta, which has no memory \(the operators in torch.ops take it\)"),
    ("prefix", lambda: torch.ones(N, H, D).to_sparse(), "expected a strided tensor, got one of layout torch.sparse_coo"),
    ("prefix_lse", lambda: torch.ones(H, N, dtype=torch.complex64).conj().imag, "got a lazily negated view"),
    ("prefix_lse", lambda: torch._neg_view(torch.ones(H, N)), "got a lazily negated view"),
    ("prefix", lambda: torch._neg_view(torch.ones(N, H, D, dtype=torch.bfloat16)), "got a lazily negated view"),
    ("prefix", lambda: fake(), "expected a plain torch tensor, got torch._subclasses.fake_tensor.FakeTensor, which redefines torch's operations"),
]


def fake() -> torch.Tensor:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(N, H, D)


def test_tensors_of_transforms(dispatch: _runtime.Dispatcher) -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        dispatch(arguments(prefix=x))
        return x.sum()

    message = r"expected a tensor with memory of its own, got one of torch.vmap or another transform of torch.func \(call the kernel outside of it\)"
    for transformed in (lambda: torch.vmap(call)(torch.ones(2, N, H, D)), lambda: torch.func.grad(call)(torch.ones(N, H, D))):
        with pytest.raises(mlafix.ArgumentError, match=message):
            transformed()


@pytest.mark.parametrize("name, make, message", WRONG_NUMPY + WRONG_TORCH)
def test_wrong_argument(dispatch: _runtime.Dispatcher, name: str, make: Callable[[], object], message: str) -> None:
    for call in (dispatch, dispatch.bind):
        with pytest.raises(mlafix.ArgumentError, match=message) as error:
            call(arguments(**{name: make()}))
        text = str(error.value)
        assert 'kernel "merge_attn_states": argument "' in text
        assert "C++" not in text and "frame #" not in text
    dispatch(arguments())  # the process is still alive


def test_nothing_is_launched_when_a_check_fails(dispatch: _runtime.Dispatcher) -> None:
    out = np.full((N, H, D), np.nan, np.float32)
    with pytest.raises(mlafix.ArgumentError):
        dispatch(arguments(out=out, context_rows=N + 1))
    assert np.isnan(out).all()


def test_overlap(dispatch: _runtime.Dispatcher) -> None:
    both = rows(shape=(N + 1, H, D))
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected memory apart from that of argument'):
        dispatch(arguments(out=both[1:], prefix=both[:-1]))


@pytest.mark.parametrize("count", [0, 6, 8])
def test_wrong_number_of_arguments(dispatch: _runtime.Dispatcher, count: int) -> None:
    with pytest.raises(mlafix.ArgumentError, match=f"expected 7 arguments, got {count}"):
        dispatch((*arguments(), None)[:count])


def test_arguments_that_are_no_tuple(dispatch: _runtime.Dispatcher) -> None:
    with pytest.raises(mlafix.ArgumentError, match="expected a tuple of arguments, got list"):
        dispatch(list(arguments()))  # type: ignore[arg-type]


def test_unknown_flags(dispatch: _runtime.Dispatcher) -> None:
    with pytest.raises(mlafix.ArgumentError, match='argument "flags"'):
        dispatch(arguments(), None, 0x4000)


def test_grad_may_be_ignored(dispatch: _runtime.Dispatcher) -> None:
    args = arguments(prefix=torch.ones(N, H, D, requires_grad=True))
    out = args[0]
    out[:] = 7
    dispatch(args, None, _runtime.IGNORE_GRAD)
    assert (out == 1).all()
    out[:] = 7
    with torch.no_grad():
        dispatch(args)
    assert (out == 1).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"resolve": 3}, 'argument "resolve": expected a function, got int'),
        ({"views": {"out": (0, 1)}}, 'argument "views": expected a permutation of 3 dims for "out", got'),
        ({"views": {"out": (0, 1, 1)}}, 'argument "views": expected a permutation of 3 dims for "out", got'),
        ({"views": {"nobody": (0,)}}, 'argument "views": expected the names of arguments, got "nobody"'),
    ],
)
def test_wrong_dispatchers(merge_dispatcher: MakeDispatcher, options: dict, message: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        merge_dispatcher(**options)


@pytest.mark.parametrize("signature", ["[]", "{}", '{"args": [{"name": "x", "kind": "scalar", "dtype": "f64"}]}'])
def test_wrong_signatures(signature: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match='argument "signature": expected'):
        _runtime.Dispatcher("k", signature, lambda *_: None)
