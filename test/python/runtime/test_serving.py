"""Functions that an engine calls before and while it serves: availability of kernels, keys of its calls, and
warm-up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import mlafix
import numpy as np
import pytest

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

from mlafix import cache, library, ops
from mlafix._files import toolchain
from mlafix._launcher import recording

F32 = np.float32


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yields the names of the kernels that are compiled during the test, which starts with an empty cache."""
    found: list[str] = []
    plain = cache.Variants._compile

    def compile(self: cache.Variants, bindings: dict[str, str], target: str) -> bytes:
        found.append(self.kernel)
        return plain(self, bindings, target)

    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MLAFIX_STRICT", raising=False)
    monkeypatch.setattr(cache.Variants, "_compile", compile)
    cache.clear_memory()
    yield found
    cache.clear_memory()


def rows(n: int = 1, heads: int = 3, dim: int = 40) -> tuple[np.ndarray, np.ndarray]:
    return np.ones((n, heads, dim), F32), np.zeros((heads, n), F32)


def two(**shape: int) -> tuple[np.ndarray, ...]:
    return (*rows(**shape), *rows(**shape))


def test_keys_need_no_compiler_and_launch_nothing(compiled: list[str]) -> None:
    out, out_lse = np.full((1, 3, 40), 7, F32), np.full((3, 1), 7, F32)
    (key,) = mlafix.compile_keys([(ops.merge_attn_states, two())])
    (given,) = mlafix.compile_keys([(ops.merge_attn_states, dict(zip(("prefix", "prefix_lse", "suffix", "suffix_lse"), two()), out=out, out_lse=out_lse))])
    assert key == given and hash(key) == hash(given)
    assert str(key) == "merge_attn_states D=40, H=3, T=f32, out_lse=present"
    assert (out == 7).all() and (out_lse == 7).all() and not compiled


def test_keys_are_there_once_and_do_not_depend_on_tokens() -> None:
    keys = mlafix.compile_keys([(ops.merge_attn_states, two(n=n)) for n in (1, 5)] + [("merge_attn_states", {"H": 3, "D": 40, "T": "f32"})])
    assert [str(key) for key in keys] == ["merge_attn_states D=40, H=3, T=f32, out_lse=present", "merge_attn_states D=40, H=3, T=f32"]


def test_warm_calls_compile_nothing(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def layer(x: np.ndarray, lse: np.ndarray) -> None:
        ops.merge_attn_states(x, lse, x, lse, out_format=ops.Fp8Groups(np.empty((x.shape[0], 3, 1), F32)))
        ops.softmax(x[:, 0])

    keys = mlafix.compile_keys([(layer, rows())])
    assert [key.kernel for key in keys] == ["merge_attn_states", "softmax"] and not compiled
    units = mlafix.warmup(keys, "cpu")
    assert len(units) == 2 and sorted(compiled) == ["merge_attn_states", "softmax"]
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    layer(*rows(n=6))
    assert len(compiled) == 2


def test_other_threads_launch_while_keys_are_taken() -> None:
    x = np.ones((2, 40), F32)
    out = np.zeros_like(x)

    def other() -> None:
        thread = Thread(target=lambda: ops.softmax(x, out=out))
        thread.start()
        thread.join()

    assert mlafix.compile_keys([(other, ())]) == []
    assert np.allclose(out, 1 / 40)


def test_keys_may_be_taken_within_a_call_whose_keys_are(compiled: list[str]) -> None:
    inner: list[mlafix.CompileKey] = []
    x, out = np.ones((2, 40), F32), np.zeros((2, 40), F32)

    def step() -> None:
        inner.extend(mlafix.compile_keys([(ops.rmsnorm, (x, x[0]))]))
        ops.softmax(x, out=out)

    assert [key.kernel for key in mlafix.compile_keys([(step, ())])] == ["softmax"]
    assert [key.kernel for key in inner] == ["rmsnorm"] and not out.any() and not compiled


def test_kernels_and_bound_calls_in_a_function_launch_nothing(compiled: list[str]) -> None:
    x, out = np.ones((2, 40), F32), np.zeros((2, 40), F32)

    def step() -> None:
        library.softmax(out, x, 1.0)
        library.softmax.bind(out, x, 1.0)(None)
        ops.softmax.bind(x, out=out)()

    assert [str(key) for key in mlafix.compile_keys([(step, ())])] == ["softmax D=40, T=f32"]
    assert not out.any() and not compiled


def within_a_recording(call: Any) -> None:
    """Makes the call on another thread while this thread records keys."""
    thread = Thread(target=call)
    mlafix.compile_keys([(lambda: (thread.start(), thread.join()), ())])


def test_compiled_functions_are_not_compiled_anew_while_keys_are_taken() -> None:
    torch = pytest.importorskip("torch")
    x, lse, graphs = torch.ones(2, 3, 40), torch.zeros(3, 2), []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    def kernel(x: Any) -> Any:
        out = torch.empty_like(x)
        library.softmax(out, x, 1.0)
        return out

    for function, arguments in ((ops.merge_attn_states, (x, lse, x, lse)), (kernel, (x[0],))):
        fast = torch.compile(function, backend=backend, fullgraph=True)
        function(*arguments)
        fast(*arguments)
        before = len(graphs)
        within_a_recording(lambda: fast(*arguments))
        assert len(graphs) == before
    assert len(graphs) == 2


def test_compiled_functions_launch_nothing_when_their_keys_are_taken(compiled: list[str]) -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(2, 40)
    step = torch.compile(lambda x: library.softmax(out, x, 1.0), backend="eager", fullgraph=True)
    assert [str(key) for key in mlafix.compile_keys([(step, (torch.ones(2, 40),))])] == ["softmax D=40, T=f32"]
    assert not out.any() and not compiled


def test_tensors_without_memory_have_keys() -> None:
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    def requests(n: int, **where: str) -> list[Any]:
        x, lse = torch.ones(n, 3, 40, dtype=torch.bfloat16, **where), torch.zeros(3, n, **where)
        return [(ops.merge_attn_states, (x, lse, x, lse)), (ops.softmax, (x[:, 1],)), (library.softmax, (x[:, 1], x[:, 1], 1.0)),
                (ops.merge_states_list, ([x, x, x], [lse.T, lse.T, lse.T])), (ops.zero_blocks, (x, torch.zeros(n, dtype=torch.int64, **where))),
                (ops.cumulate_lens, (torch.zeros(n, dtype=torch.int32, **where),))]

    wanted = mlafix.compile_keys(requests(2))
    assert mlafix.compile_keys(requests(2, device="meta")) == wanted
    assert mlafix.compile_keys(requests(2**40, device="meta")) == wanted
    with FakeTensorMode():
        assert mlafix.compile_keys(requests(2)) == wanted


def test_other_tensors_without_memory_are_checked() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(mlafix.ArgumentError, match='argument "x": expected'):
        mlafix.compile_keys([(library.softmax, (torch.ones(2, 40, device="meta"), torch.ones(2, 48, device="meta"), 1.0))])


def test_calls_bound_before_are_launched() -> None:
    x, out = np.ones((2, 40), F32), np.zeros((2, 40), F32)
    assert mlafix.compile_keys([(ops.softmax.bind(x, out=out), ())]) == []
    assert np.allclose(out, 1 / 40)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_records_for_its_own_thread_alone() -> None:
    statuses: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(len(recording.recorders))
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    within_a_recording(fork)
    mlafix.compile_keys([(fork, ())])
    mlafix.compile_keys([(lambda: mlafix.compile_keys([(fork, ())]), ())])
    assert statuses == [0, 1, 2] and not recording.recorders


def test_reducers_calls_have_keys(compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from mlafix.distributed import Reducer

    torch.distributed.init_process_group("gloo", store=torch.distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        reducer = Reducer(max_tokens=4, heads=2, head_dim=24, dtype="f32", device="cpu")
        out = torch.full((2, 2, 24), 7.0)
        call = {"partial": torch.ones(2, 2, 24), "lse": torch.zeros(2, 2), "seq_lens": torch.tensor([3, 0]), "out": out}
        count = len(compiled)
        keys = mlafix.compile_keys([(reducer.reduce, call)])
        assert {key.kernel for key in keys} == {"pack_blocks", "merge_blocks"} and len(compiled) == count and (out == 7).all()
        mlafix.warmup(keys, "cpu")
        monkeypatch.setenv("MLAFIX_STRICT", "1")
        reducer.reduce(**call)
        assert (out[0] == 1).all() and (out[1] == 0).all()
    finally:
        torch.distributed.destroy_process_group()


def test_a_wrong_call_has_no_key() -> None:
    with pytest.raises(mlafix.ArgumentError, match='argument "suffix": expected size 40'):
        mlafix.compile_keys([(ops.merge_attn_states, (*rows(), *rows(dim=48)))])


def test_keys_of_kernels_of_ones_own() -> None:
    x = np.ones((2, 40), F32)
    (key,) = mlafix.compile_keys([(library.softmax, (x, x, 1.0)), (library.softmax, {"D": 40, "T": "f32"})])
    assert key.bindings == {"D": "40", "T": "f32"}


def test_nothing_is_compiled_if_a_call_is_wrong(compiled: list[str]) -> None:
    with pytest.raises(mlafix.ArgumentError):
        mlafix.warmup([("softmax", {"D": 40, "T": "f32"}), (ops.merge_attn_states, (*rows(), *rows(dim=48)))], "cpu")
    assert not compiled
    with pytest.raises(mlafix.CompileError):
        mlafix.warmup([("softmax", {"D": 40, "T": "i32"}), ("softmax", {"D": 40, "T": "f32"})], "cpu")
    assert compiled == ["softmax"] * 2
    mlafix.warmup([("softmax", {"D": 40, "T": "f32"})], "cpu")
    assert compiled == ["softmax"] * 2


def test_available_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    call = (ops.merge_attn_states, two())
    assert mlafix.available("cpu", [call]) == (True, "")
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    found = mlafix.available("cpu", [call])
    assert not found and "merge_attn_states" in found.reason and "MLAFIX_STRICT forbids compiling it" in found.reason
    assert mlafix.available("cpu")


@pytest.mark.parametrize("device, requests, reason", [
    ("tpu", (), "tpu"),
    ("cuda:99", (), "ordinal"),
    ("cpu", [3], 'argument "requests"'),
    ("cpu", 3, "TypeError"),
    ("cpu", [(ops.softmax, ("x",))], "argument"),
])  # fmt: skip
def test_available_never_raises(device: str, requests: Any, reason: str) -> None:
    found = mlafix.available(device, requests)
    assert not found and reason in found.reason, found


def test_available_without_a_working_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise mlafix.CompileError("expected the compiler, got: libLLVM.so is missing")

    monkeypatch.setattr(toolchain, "compiler", broken)
    assert mlafix.available("cpu") == (False, "expected the compiler, got: libLLVM.so is missing")


def compare_keys() -> None:
    """Compares the keys that `compile_keys` returns with the keys that a call requests, for each function of ops and
    compat. Runs in a process without earlier calls."""
    from programs_of_torch import PROGRAMS

    plain = cache.Variants.unit_of_call
    ever: set[mlafix.CompileKey] = set()

    def asks(self: cache.Variants, bindings: Any, target: str) -> Any:
        asked.append(mlafix.CompileKey(self, bindings, of_call=True))
        return plain(self, bindings, target)

    for name, program in PROGRAMS.items():
        keys = mlafix.compile_keys([(program.run, program.make(4, 8, 32))])
        asked: list[mlafix.CompileKey] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cache.Variants, "unit_of_call", asks)
            program.run(*program.make(4, 8, 32))
        # A dispatcher requests a key only once, so an earlier function's call may have requested some of `keys`.
        ever.update(asked)
        assert keys and set(asked) <= set(keys) <= ever, f"{name}: {keys}, {asked}"


def test_every_function_has_the_keys_that_its_calls_ask_for() -> None:
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", "import test_serving; test_serving.compare_keys()"],
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_page_chooses_and_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    page = (Path(__file__).resolve().parents[3] / "docs/Serving.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        exec(block, names)
    own = object()
    assert names["choose"]("cpu", own) is names["vllm"].merge_attn_states
    assert names["choose"]("cuda:99", own) is own
    monkeypatch.setenv("MLAFIX_STRICT", "1")
    assert names["merge"](ops.merge_attn_states, lambda *_: own, *two(dim=48)) is own
