"""Calls through the dispatcher on a CUDA device: streams, captured graphs, devices and bound calls. These tests need
torch and a GPU."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device that torch can use", allow_module_level=True)

import numpy as np  # noqa: E402
from contract import merge_attn_states  # noqa: E402

import mlafix  # noqa: E402
from mlafix import _runtime, library  # noqa: E402

N, H, D = 33, 16, 128
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
TOLERANCE = {"bf16": 2**-8, "f16": 2**-11, "f32": 4e-6}
BIG = 4096  # so many rows that the GPU is still busy when the host makes its next call


@pytest.fixture(scope="module")
def dispatch() -> _runtime.Dispatcher:
    return library.viewed("merge_attn_states")._dispatch


def inputs(dtype: str = "bf16", n: int = N, seed: int = 1) -> list[torch.Tensor]:
    """Returns random prefix, prefix_lse, suffix and suffix_lse on the current device."""
    torch.manual_seed(seed)
    pair = [(n, H, D), (H, n)] * 2
    return [torch.randn(s, device="cuda").to(DTYPES[dtype] if len(s) == 3 else torch.float32) for s in pair]


def outputs(dtype: str = "bf16", n: int = N) -> list[torch.Tensor]:
    return [
        torch.full((n, H, D), torch.nan, dtype=DTYPES[dtype], device="cuda"),
        torch.full((H, n), torch.nan, device="cuda"),
    ]


def merged(prefix: np.ndarray, prefix_lse: np.ndarray, suffix: np.ndarray, suffix_lse: np.ndarray,
           rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the expected out [n, H, D] and lse [H, n], in f64."""
    out, lse = merge_attn_states(prefix, prefix_lse.T, suffix, suffix_lse.T, rows)
    return out.value, lse.value.T


def assert_merged(dtype: str, got: list[torch.Tensor], given: list[torch.Tensor], rows: int) -> None:
    want, want_lse = merged(*(tensor.double().cpu().numpy() for tensor in given), rows)
    out, lse = (tensor.double().cpu().numpy() for tensor in got)
    np.testing.assert_allclose(out, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    np.testing.assert_allclose(lse, want_lse, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_tensors(dispatch: _runtime.Dispatcher, dtype: str) -> None:
    given, got = inputs(dtype), outputs(dtype)
    dispatch((*got, *given, 20))
    assert_merged(dtype, got, given, 20)


def test_code_is_for_this_device(dispatch: _runtime.Dispatcher) -> None:
    kernel = dispatch.prepare((*outputs(), *inputs(), 0))
    major, minor = torch.cuda.get_device_capability()
    assert _runtime.device_target("cuda:0") == f"sm_{major}{minor}"
    assert kernel.code("cuda:0")["target"] == f"sm_{major}{minor}"


def test_launches_go_to_the_current_stream(dispatch: _runtime.Dispatcher) -> None:
    given, got = inputs(n=BIG), outputs(n=BIG)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        # The inputs change on the same stream, after much other work. The result is right only if the launch is on that
        # stream, too.
        for _ in range(20):
            given[0].mul_(1.0)
        given[0].fill_(2.0)
        dispatch((*got, *given, BIG))
    torch.cuda.synchronize()
    assert_merged("bf16", got, given, BIG)


@pytest.mark.parametrize("kind", ["int", "torch", "protocol"])
def test_explicit_streams(dispatch: _runtime.Dispatcher, kind: str) -> None:
    stream = torch.cuda.Stream()

    class Other:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, stream.cuda_stream)

    given, got = inputs(n=BIG), outputs(n=BIG)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        given[2].fill_(3.0)
    dispatch((*got, *given, 7), {"int": stream.cuda_stream, "torch": stream, "protocol": Other()}[kind])
    stream.synchronize()
    assert_merged("bf16", got, given, 7)


def test_launch_does_not_wait(dispatch: _runtime.Dispatcher) -> None:
    given, got = inputs(n=BIG), outputs(n=BIG)
    dispatch((*got, *given, 1))
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    torch.cuda._sleep(400_000_000)  # in GPU cycles: some tenths of a second
    dispatch((*got, *given, 1))
    done.record()
    assert not done.query(), "expected the launch to return while the GPU is busy before it"
    torch.cuda.synchronize()


@pytest.mark.parametrize("bound", [False, True])
def test_captured_graph_replays_with_changed_inputs(dispatch: _runtime.Dispatcher, bound: bool) -> None:
    given, got = inputs(), outputs()
    args = (*got, *given, 20)
    call = dispatch.bind(args) if bound else lambda: dispatch(args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # if no earlier call loaded the code, it is loaded during the capture
        call()
    for seed in (5, 6):
        for tensor, fresh in zip(given, inputs(seed=seed)):
            tensor.copy_(fresh)
        for tensor in got:
            tensor.fill_(torch.nan)
        graph.replay()
        assert_merged("bf16", got, given, 20)


def test_bound_calls(dispatch: _runtime.Dispatcher) -> None:
    given, got = inputs(), outputs()
    bound = dispatch.bind((*got, *given, 20))
    bound()
    assert_merged("bf16", got, given, 20)
    other, more = inputs(seed=9), outputs()
    bound.set_pointers((*more, *other, 3))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    bound(stream)
    stream.synchronize()
    assert_merged("bf16", more, other, 3)
    assert bound.launch_info["grid"] > 0 and bound.launch_info["function"]


def test_bound_call_keeps_its_tensors(dispatch: _runtime.Dispatcher) -> None:
    got, given = outputs(), inputs()
    bound = dispatch.bind((*got, *(tensor.clone() for tensor in given), 20))
    gc.collect()
    torch.cuda.empty_cache()
    filler = [torch.full((1 << 20,), torch.nan, device="cuda") for _ in range(8)]
    bound()
    assert_merged("bf16", got, given, 20)
    del filler


class Producer:
    """A CUDA tensor that only supports DLPack."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.streams: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, **options)


def test_dlpack_producers_learn_of_the_stream(dispatch: _runtime.Dispatcher) -> None:
    given, got = inputs(), outputs()
    args = [Producer(tensor) for tensor in (*got, *given)]
    dispatch((*args, 20))  # launches on the legacy default stream, which is also torch's current one
    torch.cuda.synchronize()
    assert_merged("bf16", got, given, 20)
    stream = torch.cuda.Stream()
    dispatch((*args, 20), stream)
    torch.cuda.synchronize()
    assert [arg.streams for arg in args] == [[1, stream.cuda_stream]] * 6


def test_mixed_devices(dispatch: _runtime.Dispatcher) -> None:
    given, got = inputs(), outputs()
    with pytest.raises(mlafix.ArgumentError, match='argument "suffix": expected a tensor on cuda:0, as argument "out", got one on cpu'):
        dispatch((*got, given[0], given[1], given[2].cpu(), given[3], 3))
    with pytest.raises(mlafix.ArgumentError, match='argument "prefix": expected a tensor on cuda:0, .* got one on cpu'):
        dispatch((*got, np.ones((N, H, D), np.float16), *given[1:], 3))


def test_deep_checks_find_host_memory_that_is_said_to_be_the_devices(dispatch: _runtime.Dispatcher) -> None:
    given, got = inputs(), outputs()
    bound = dispatch.bind((*got, *given, 3), _runtime.DEEP_CHECKS)
    host = torch.empty(N, H, D, dtype=torch.bfloat16)
    with pytest.raises(mlafix.ArgumentError, match='argument "out"'):
        bound.set_pointers((host.data_ptr(), got[1], *given, 3))


def test_wrong_scalars_on_the_device(dispatch: _runtime.Dispatcher) -> None:
    with pytest.raises(mlafix.ArgumentError, match='argument "context_rows": expected an integer, got torch.Tensor'):
        dispatch((*outputs(), *inputs(), torch.tensor(3, device="cuda")))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_another_device_than_the_current_one(dispatch: _runtime.Dispatcher) -> None:
    given = [tensor.to("cuda:1") for tensor in inputs()]
    got = [tensor.to("cuda:1") for tensor in outputs()]
    assert torch.cuda.current_device() == 0
    dispatch((*got, *given, 20))
    torch.cuda.synchronize(1)
    assert_merged("bf16", got, given, 20)
    assert torch.cuda.current_device() == 0


def test_no_leak(dispatch: _runtime.Dispatcher) -> None:
    args = (*outputs(n=1), *inputs(n=1), 1)
    for _ in range(1000):
        dispatch(args)
    torch.cuda.synchronize()
    allocated = torch.cuda.memory_allocated()
    lost = []
    # The free memory is that of the whole GPU, and other processes may take some of it in some rounds. A leak would
    # show in every round, so the least loss counts.
    for _ in range(5):
        free = torch.cuda.mem_get_info()[0]
        for _ in range(20_000):
            dispatch(args)
        torch.cuda.synchronize()
        lost.append(free - torch.cuda.mem_get_info()[0])
    assert torch.cuda.memory_allocated() == allocated
    assert min(lost) < 16 << 20
