"""Tests kernels that read tensors of all ranks: their language, their calls on the CPU, and the arguments of a launch
on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numerics import same_bits
from sources import HEADER, load, refused

import mlafix
from mlafix._runtime import GROUP_BYTES, MAX_RANKS, PeerGroup, PeerTensors
from mlafix.errors import ArgumentError

SUM = """
@kernel(allow={"bounds"})
def total(out: Out[f32, "n D"], parts: Peers[In[T, "n D"]], counts: Peers[In[i32, "n"]]):
    for t in grid("n"):
        acc = splat(0.0, "D")
        for r in range(ranks(parts)):
            if counts[r][t] > 0:
                acc = acc + parts[r][t]
        out[t] = acc + parts[0][t, 0] * f32(shape("ranks"))
"""
NEEDED = "\nT = DType('T', default=f32)\n"


@pytest.fixture(scope="module")
def total(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load(tmp_path_factory.mktemp("kernels"), NEEDED + SUM).total


def parts_of(rng: np.random.Generator, ranks: int, n: int, dim: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns the rows and the counts of each rank, at unrelated addresses."""
    rows = [rng.standard_normal((n + 3, dim), dtype=np.float32)[rank % 3 : rank % 3 + n] for rank in range(ranks)]
    return rows, [rng.integers(0, 2, n).astype(np.int32) for _ in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 16, MAX_RANKS])
def test_a_cpu_reads_each_ranks_tensor(total: Any, ranks: int, rng: np.random.Generator) -> None:
    for n, bound in ((0, False), (1, False), (7, False), (4, True)):
        rows, counts = parts_of(rng, ranks, n, 24)
        want = np.zeros((n, 24), np.float32)
        for row, count in zip(rows, counts):
            want = np.where((count > 0)[:, None], want + row, want)
        want = want + rows[0][:, :1] * np.float32(ranks)
        out = np.full((n, 24), np.nan, np.float32)
        kernel = total.specialize(ranks=ranks) if bound else total
        kernel(out, rows, PeerTensors(counts))
        assert same_bits(out, want), (n, bound)


@pytest.mark.parametrize("ranks", [2, 5, 9])
def test_states_of_ranks_merge_like_those_of_one_tensor(ranks: int, rng: np.random.Generator) -> None:
    from mlafix.kernels.ranks import merge_blocks, merge_peers

    rows, lses = rng.standard_normal((ranks, 6, 4, 64), dtype=np.float32), rng.standard_normal((ranks, 6, 4), dtype=np.float32)
    lses[:, 0] = lses[0, 1] = -np.inf
    rows[0, 1] = np.nan
    results = []
    for kernel, more in ((merge_blocks, (rows, lses)), (merge_peers, (list(rows.copy()), list(lses.copy())))):
        out, out_lse = np.empty((6, 4, 64), np.float32), np.empty((6, 4), np.float32)
        kernel(out, out_lse, None, None, *more)
        results.append((out, out_lse))
    assert same_bits(results[0][0], results[1][0]) and same_bits(results[0][1], results[1][1])
    assert not results[0][0][0].any() and np.isneginf(results[0][1][0]).all()


BODIES = [
    ("y[t] = p[0, t]", "p[0, t]", "expected one index, a rank, as in p[r][…], got p[0, t]"),
    ("y[t] = p[t:]", "p[t:]", "expected one index, a rank, as in p[r][…]"),
    ("y[t] = p[0]", "p[0]", "expected a scalar, a row or a state, got the tensor 'p' of one rank"),
    ("y[t] = load(p[t])", "p[t]", "expected an element or a row of a tensor, as parts[r][t, h], got the tensor 'p'"),
    ("y[t] = p[0][t, 0, 0]", "p[0][t, 0, 0]", "expected 1 index for a row of 'p' or 2 for an element, got 3"),
    ("y[t] = p[-1][t]", "-1", "expected an index of at least 0, got -1"),
    ("p[0][t] = y[t]", "p[0][t]", "expected a tensor declared with Out or InOut to store to, got 'p', which is In"),
    ("y[t] = splat(f32(ranks(y)), 'D')", "ranks(y)", "expected tensors of all ranks, declared with Peers, got the tensor 'y'"),
    ("y[t] = splat(f32(p.shape[1]), 'D')", "p.shape", 'expected shape("name") or ranks(p), got .shape of the tensor'),
]


@pytest.mark.parametrize("body, underlined_text, message", BODIES, ids=[body for body, _, _ in BODIES])
def test_errors_underline_the_expression(tmp_path: Path, body: str, underlined_text: str, message: str) -> None:
    source = f'@kernel\ndef k(y: InOut[f32, "n D"], p: Peers[In[f32, "n D"]]):\n    for t in grid("n"):\n        {body}\n'
    with refused(message, underlined_text):
        load(tmp_path, NEEDED + source).k.source()


@pytest.mark.parametrize("annotation, message", [
    ('Peers[Out[f32, "n"]]', "expected tensors declared with In or InOut"),
    ('Peers[In[f32, "n"] | None]', "expected tensors declared with In or InOut"),
    ('Peers[In[f32, "n"]] | None', "which cannot be omitted"),
    ('Peers[In[f32, "ranks n"]]', 'expected one dim or more, none named "ranks"'),
    ("Peers[f32]", "expected tensors declared with In or InOut"),
])
def test_only_tensors_that_are_read_are_peers(annotation: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        eval(annotation, dict(vars(mlafix.dsl)))


def test_wrong_calls_name_the_argument(total: Any, rng: np.random.Generator) -> None:
    rows, counts = parts_of(rng, 3, 4, 8)
    out = np.empty((4, 8), np.float32)

    def refused(parts: Any, message: str, others: Any = counts, to: np.ndarray = out) -> None:
        with pytest.raises(ArgumentError, match=message):
            total(to, parts, others)

    refused(None, '"parts": expected a list of each rank\'s tensor of dtype T, got None')
    refused(rows[0], '"parts": expected a list of each rank')
    refused([], "expected a tensor of each of 1 to 72 ranks, got 0")
    refused([rows[0]] * 73, "expected a tensor of each of 1 to 72 ranks, got 73")
    refused([rows[0], rows[1][:, :4], rows[2]], r"expected the sizes \[4, 8\] of rank 0's tensor, got \[4, 4\] of rank 1")
    refused([rows[0], rows[1].astype(np.int32), rows[2]], "expected the dtype f32 of rank 0's tensor, got i32 of rank 1")
    refused(rows[:2], '"counts": expected size 2 in dim 0 \\("ranks"\\), as in argument "parts", got 3')
    refused([row[0] for row in rows], "expected 2 dims, got 1")
    refused([rows[0], out, rows[2]], '"out": expected memory apart from that of argument "parts" of rank 1, got an overlap')
    with pytest.raises(ArgumentError, match="expected a PeerGroup or None, got str"):
        PeerTensors(rows, "group")  # type: ignore[arg-type]


def test_bound_calls_keep_the_ranks_tensors(total: Any) -> None:
    out, other = np.zeros((2, 8), np.float32), np.zeros((2, 8), np.float32)
    rows, counts = [np.full((2, 8), rank, np.float32) for rank in range(3)], [np.ones(2, np.int32) for _ in range(3)]
    bound = total.bind(out, PeerTensors(rows), counts)
    bound()
    # set_pointers replaces only `out`. It keeps the ranks' tensors and ignores the arguments at their positions.
    bound.set_pointers((other, None, None))
    del counts
    bound()
    assert (out == 3).all() and (other == 3).all()


def test_what_cannot_have_other_ranks_tensors(total: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's operators and `debug` refuse kernels with tensors of other ranks. With MLAFIX_DEBUG=1, calls of such
    kernels are launched, but not watched."""
    with pytest.raises(ArgumentError, match='torch cannot trace argument "parts", declared with Peers; call'):
        total.torch_operator()
    out, rows, counts = np.zeros((2, 8), np.float32), [np.ones((2, 8), np.float32)] * 2, [np.ones(2, np.int32)] * 2
    with pytest.raises(ArgumentError, match="expected no Peers arguments, whose rows debug.. cannot follow, got parts, counts$"):
        total.debug(out, rows, counts)
    monkeypatch.setenv("MLAFIX_DEBUG", "1")  # a kernel reads the variable once, so a new kernel is called
    total.specialize(ranks=2)(out, rows, counts)
    assert (out == 4).all()


@pytest.mark.parametrize("rank, workspaces, timeout, message", [
    (0, [], 1.0, "expected one for each of 1 to 72 ranks, and a rank below, got 0 and rank 0"),
    (2, [128, 256], 1.0, "got 2 and rank 2"),
    (0, [128] * 73, 1.0, "got 73 and rank 0"),
    (0, [128], 0.0, "expected seconds above 0 and at most 1e9, got 0"),
    (0, [128], float("nan"), "expected seconds above 0"),
])
def test_groups_that_cannot_be(rank: int, workspaces: list[int], timeout: float, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        PeerGroup(rank, workspaces, timeout)


def test_units_keep_what_is_of_each_rank(total: Any) -> None:
    unit = total.compile(D=8, T="f32", ranks=4, target="cpu")
    args = {arg["name"]: arg for arg in unit.kernels[0].args}
    assert args["parts"]["kind"] == "peers" and args["parts"]["dims"] == ["ranks", "n", "D"] and args["parts"]["shape"][0] == 4
    out, rows, counts = np.zeros((2, 8), np.float32), [np.ones((2, 8), np.float32)] * 4, [np.ones(2, np.int32)] * 4
    bound = total.specialize(ranks=4)
    bound(out, rows, counts)
    assert (out == 8).all()
    with pytest.raises(ArgumentError, match='"parts": expected size 4 in dim 0 \\("ranks"\\), got 3'):
        bound(out, rows[:3], counts[:3])
    any_ranks = total.compile(D=8, T="f32", target="cpu")
    any_ranks["total"](out, rows[:3], counts[:3])
    assert (out == 6).all()


SHARED = Path(__file__).resolve().parent.parent
ON_A_GPU = """
import ctypes
import sys
sys.path.insert(0, {kernels!r})
from fake_cuda import Framework, launches
from mlafix._runtime import GROUP_BYTES, PeerGroup, PeerTensors
from mlafix.errors import ArgumentError, RankError
from copied import copied

def group(rank, ranks, **options):
    workspaces = [0x10000 * (r + 1) for r in range(ranks)]
    failure = (ctypes.c_uint64 * 1)()
    return PeerGroup(rank, workspaces, 2.5, ctypes.addressof(failure)), workspaces, failure

def params_of(info):
    # The address of each parameter.
    return list((ctypes.c_void_p * 32).from_address(info["kernel_params"]))

def read(address, count):
    return list((ctypes.c_uint64 * count).from_address(address))

for ranks, kernel in ((2, copied), (3, copied.specialize(ranks=3))):
    out, parts = Framework((4, 8), 0), [Framework((4, 8), 0) for _ in range(ranks)]
    of, workspaces, failure = group(ranks - 1, ranks)
    bound = kernel.bind(out, PeerTensors(parts, of))
    info = bound.launch_info
    most, addresses = 72 if ranks == 2 else 3, [part.managed.tensor.data for part in parts]
    # The parameters: out, the size n, the table of the parts' addresses, the number of ranks unless it is bound, the
    # group. The table is the parameter that begins with the address of the first part.
    params = params_of(info)
    count = info["num_params"]
    table = next(at for at, address in enumerate(params[:count]) if read(address, 1) == addresses[:1])
    assert read(params[table], most) == [*addresses, *[0] * (most - ranks)]
    assert params[table + 1] - params[table] == 8 * most
    assert read(params[count - 1], 3 + most) == [
        ranks - 1 | ranks << 32, 2500000000, ctypes.addressof(failure), *workspaces, *[0] * (most - ranks)]
    assert info["slots"] == read(params[0], count - 2 + most + 3 + most)
    assert info["rows"] == 4 and info["dependent"]

# A rank without rows launches, too.
of, _, failure = group(0, 2)
empty = [Framework((0, 8), 0), Framework((0, 8), 0)]
bound = copied.bind(Framework((0, 8), 0), PeerTensors(empty, of))
info = bound.launch_info
assert info["grid"] == 1 and info["rows"] == 1, info
before = len(launches())
copied(Framework((0, 8), 0), PeerTensors(empty, of))
assert len(launches()) == before + 1

# Calls and bound calls name a rank that did not launch.
out, parts = Framework((4, 8), 0), [Framework((4, 8), 0), Framework((4, 8), 0)]
bound = copied.bind(out, PeerTensors(parts, of))
bound()
of.check()
failure[0] = 2
for call in (of.check, bound, lambda: copied(out, PeerTensors(parts, of))):
    try:
        call()
    except RankError as error:
        assert "expected all 2 ranks of the group to launch, got no launch of rank 1" in str(error), error
    else:
        raise AssertionError("expected a RankError")

def refused(text, parts, of):
    try:
        copied(out, PeerTensors(parts, of))
    except ArgumentError as error:
        assert text in str(error), error
    else:
        raise AssertionError("expected an ArgumentError: " + text)

refused("expected PeerTensors with a group for tensors on a GPU, got none", parts, None)
refused("expected a group of 2 ranks, one per tensor, and a rank below that, got 3 ranks and rank 0", parts, group(0, 3)[0])
refused("expected the workspace of rank 1 at an address that is a multiple of 128", parts, PeerGroup(0, [0x10000, 0x10040], 1.0))

# Ranks that store to each other need a slot for each block. No argument may overlap the memory that other ranks store to.
from copied import swapped

def swap(tokens, slots):
    staged = [Framework((2, 2, tokens, 8), 0) for _ in range(2)]
    of = PeerGroup(0, [0x10000, 0x20000], 2.5, 0, slots)
    swapped(Framework((tokens, 8), 0), Framework((tokens, 8), 0), PeerTensors(staged, of), 0)

before = len(launches())
swap(4096, 4096)
grid = launches()[-1].grid
assert len(launches()) == before + 1 and 1 < grid < 4096, grid
swap(4096, grid)
for slots, text in ((grid - 1, f"expected a grid of at most {{grid - 1}} blocks, for which the group has slots, got {{grid}}"),
                    (0, "expected a grid of at most 0 blocks")):
    for _ in range(2):
        try:
            swap(4096, slots)
        except ArgumentError as error:
            assert text in str(error), error
        else:
            raise AssertionError("expected an ArgumentError: " + text)
assert len(launches()) == before + 2
"""
COPIED = """
@kernel(allow={"bounds"})
def swapped(out: Out[f32, "n D"], x: In[f32, "n D"], staged: Peers[InOut[f32, "turns=2 r n D"]], rank: index):
    for t in grid("n"):
        half = turn()
        for r in range(ranks(staged)):
            store(staged[r][half, rank, t], x[t])
        exchange()
        acc = splat(0.0, "D")
        for r in range(ranks(staged)):
            acc = acc + staged[rank][half, r, t]
        out[t] = acc


@kernel(allow={"bounds"})
def copied(out: Out[f32, "n D"], parts: Peers[In[f32, "n D"]]):
    for t in grid("n"):
        acc = splat(0.0, "D")
        for r in range(ranks(parts)):
            acc = acc + parts[r][t]
        out[t] = acc
"""


def test_what_a_launch_on_a_gpu_passes(tmp_path: Path) -> None:
    """A launch on a GPU passes the expected arguments. The test uses a stub of the driver, which records the calls."""
    folder = tmp_path / "driver"
    folder.mkdir()
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(SHARED / "fake_cuda.c"), "-o", str(folder / "libcuda.so.1")], check=True)
    except FileNotFoundError:
        pytest.skip("needs a C compiler")
    (tmp_path / "copied.py").write_text(HEADER + COPIED)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "PYTHONPATH": f"{SHARED}:{os.environ.get('PYTHONPATH', '')}",
        "MLAFIX_CACHE_DIR": str(tmp_path / "cache"),
    }
    code = ON_A_GPU.format(kernels=str(tmp_path))
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=True)
    assert GROUP_BYTES == 2048
