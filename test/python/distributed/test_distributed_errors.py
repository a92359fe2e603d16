"""Tests calls that differ between the ranks of a gloo group. Every rank raises an error, nothing is written, and the
next call is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch.distributed")

import mlafix
import torch
from mlafix.distributed import Reducer
from mlafix.distributed._reducer import _workspace_problem
from mlafix.distributed.ranks import GlooRanks
from ranks import RankPool, raised


POOL = dict(ranks=3, timeout=20)


@pytest.mark.parametrize("size", [4 * 16 * 4 + 4 * 4, 4096])
def test_messages_of_the_groups_other_users_are_left_alone(pool: RankPool, size: int) -> None:
    """A message that a user of the same group sends meanwhile is not taken for a block. Regression: a message with at
    least as many bytes as a block was merged in its place, or ended the process."""
    for result in raised(pool.run("own_traffic", [(size,)] * 2)):
        assert (result["out"] == 1.5).all() and (result["theirs"] == 42).all()


@pytest.mark.parametrize("cut", ["heads", "tokens", "none"])
@pytest.mark.parametrize("tokens", [("0", "4"), ("4", "0"), ("2", "3"), ("3", "4"), ("4", "1")], ids=str)
def test_numbers_of_tokens_that_differ(pool: RankPool, tokens: tuple[str, str], cut: str) -> None:
    """If the ranks' numbers of tokens differ, every rank raises an error. This holds even if their blocks have the same
    size, as with 3 and 4 tokens that are cut."""
    if cut == "heads":
        for error, written, again in raised(pool.run("mistaken", [(one, {"cut": cut}) for one in tokens])):
            assert error == f'ArgumentError: argument "partial": expected {tokens[0]} tokens, as rank 0 has, got {tokens[1]} tokens on rank 1'
            assert not written and again
    for result in pool.run("call_of", [({"cut": cut}, int(one)) for one in tokens]):
        assert isinstance(result, mlafix.ArgumentError) and "tokens, as rank 0 has" in str(result), result


WRONG = [
    ("base", 'argument "base": expected e, as rank 0 has, got 2 on rank 1', False),
    ("expanded", 'argument "out": expected each element of a tensor that is written at an address of its own', True),
    ("followed", 'argument "out": expected a tensor that autograd does not follow', True),
    ("overlapping", 'argument "out": expected memory apart from that of argument "out_lse"', True),
    ("partial followed", 'argument "partial": expected a tensor that autograd does not follow', True),
    ("lengths", 'argument "seq_lens": expected a torch.Tensor, got int', True),
    ("one length", 'argument "seq_lens": expected shape [any], got []', True),
    ("no base", "argument \"base\": expected 'e' or '2', got ''", True),
]


@pytest.mark.parametrize("mistake, text, own", WRONG, ids=[row[0] for row in WRONG])
def test_what_is_wrong_on_one_rank_is_an_error_on_all(pool: RankPool, mistake: str, text: str, own: bool) -> None:
    results = raised(pool.run("mistaken", [("", {}), (mistake, {}), ("", {})]))
    for rank, (error, written, again) in enumerate(results):
        assert error.startswith("ArgumentError: rank 1 of 3: " if own and rank != 1 else "ArgumentError: ") and text in error, error
        assert not written and again


@pytest.mark.parametrize("mistake", ["expanded", "followed", "overlapping"])
def test_outputs_are_refused_before_rows_are_sent(pool: RankPool, mistake: str) -> None:
    """A rank refuses wrong outputs before it sends anything, so the next call of the other ranks receives no rows of
    the refused call."""
    results = raised(pool.run("mistaken", [(mistake, {"check_calls": False})] * 2))
    assert all(error.startswith("ArgumentError: ") and not written and again for error, written, again in results)
    results = raised(pool.run("refused_alone", [(mistake,)] * 2))
    assert results == ["refused", "merged"]


@pytest.mark.parametrize("name", ["cp_lse_ag_out_rs", "cp_lse_ag_out_ar", "dcp_a2a_lse_reduce"])
def test_drop_ins_compare_shapes_and_dtypes(pool: RankPool, name: str) -> None:
    for second, got in (((3, "float32", 4), "[3, 4, 16] of float32"), ((0, "float32", 4), "[0, 4, 16] of float32"),
                        ((2, "bfloat16", 4), "[2, 4, 16] of bfloat16"), ((2, "float32", 2), "[2, 2, 16] of float32")):
        texts = raised(pool.run("drop_in", [(name, 2, "float32", 4), (name, *second)]))
        assert texts == [f'ArgumentError: argument "cp_attn_out": expected [2, 4, 16] of float32, as rank 0 has, got {got} on rank 1'] * 2
    texts = raised(pool.run("drop_in", [(name, 2, "float32", 4), (name, 2, "float64", 4)]))
    text = 'argument "cp_attn_out": expected dtype bfloat16 or float16 or float32, got float64'
    assert texts == [f"ArgumentError: rank 1 of 2: {text}", f"ArgumentError: {text}"]
    assert raised(pool.run("drop_in", [(name, 2, "float32", 4)] * 2)) == ["merged"] * 2


GOOD: dict[str, Any] = {"max_tokens": 4, "heads": 6, "head_dim": 16}


@pytest.mark.parametrize("wrong, text", [
    ({"backend": "nccl"}, 'argument "backend": expected "auto" or "gloo", what the group has for cpu, got \'nccl\''),
    ({"backend": "tcp"}, 'argument "backend": expected "auto", "symmetric", "nccl" or "gloo", got \'tcp\''),
    ({"device": "meta"}, "argument \"device\": expected a device of type cpu or cuda, got 'meta'"),
    ({"device": "gpu"}, "argument \"device\": expected a device of type cpu or cuda, got 'gpu'"),
    ({"device": "cuda:77"}, 'argument "device": expected one of this process\'s'),
    ({"timeout": "abc"}, "argument \"timeout\": expected a number of seconds above 0 and at most 1e+09, or None, got 'abc'"),
    ({"timeout": -1}, 'argument "timeout": expected a number of seconds above 0 and at most 1e+09, or None, got -1'),
    ({"timeout": 0}, 'argument "timeout": expected a number of seconds above 0 and at most 1e+09, or None, got 0'),
    ({"timeout": float("inf")}, 'argument "timeout": expected a number of seconds above 0 and at most 1e+09, or None, got inf'),
    ({"timeout": float("nan")}, 'argument "timeout": expected a number of seconds above 0 and at most 1e+09, or None, got nan'),
    ({"max_tokens": 10**13}, 'argument "max_tokens": expected 4, as rank 0 has, got 10000000000000 on rank 1'),
    ({"head_dim": True}, 'argument "head_dim": expected an int of at least 1, got True'),
    ({"overflow": "grow"}, 'argument "overflow": expected "error" or "exchange", got \'grow\''),
    ({"cut": "\u00fc" * 700}, 'argument "cut": expected "heads", "tokens" or "none", got \'\u00fc\u00fc'),
    ({"dtype": "\U0001f996" * 700}, 'argument "dtype": expected bf16, f16 or f32, got \'\U0001f996'),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_a_constructors_argument_wrong_on_one_rank_is_an_error_on_all(pool: RankPool, wrong: dict[str, Any], text: str) -> None:
    results = pool.run("construct", [(GOOD,), ({**GOOD, **wrong},), (GOOD,)])
    assert all(isinstance(result, mlafix.ArgumentError) and text in str(result) for result in results), results
    assert pool.same("construct", 3, GOOD) == ["gloo"] * 3


def test_a_workspace_that_does_not_fit_is_an_error(pool: RankPool) -> None:
    for result in pool.run("construct", [({**GOOD, "max_tokens": 10**13},)] * 3):
        assert str(result).startswith('argument "max_tokens": expected memory for a workspace of 10000000000000 tokens, got '), result
        assert "memory" in str(result), result


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("no space"), RuntimeError("DefaultCPUAllocator: can't allocate memory"),
                                   RuntimeError("CUDA driver error: out of memory")], ids=repr)  # fmt: skip
def test_a_lack_of_memory_is_an_error_of_max_tokens(error: Exception) -> None:
    problem = _workspace_problem(9, error)
    assert str(problem).startswith('argument "max_tokens": expected memory for a workspace of 9 tokens, got ') and problem.__cause__ is error


@pytest.mark.parametrize("text", ["CUDA error: an illegal memory access was encountered", "NCCL error: unhandled system error"])
def test_other_errors_of_a_workspace_are_raised_as_they_are(text: str) -> None:
    error = RuntimeError(text)
    assert _workspace_problem(9, error) is error


def test_an_exchange_that_fails_says_why() -> None:
    ranks = object.__new__(GlooRanks)
    ranks.size, ranks.timeout, ranks._global = 2, None, [0, 3]
    error = ranks._missing(1, RuntimeError("no space left on device"))
    assert str(error) == "expected rows from rank 1 of 2 (global rank 3), got none: the exchange failed: no space left on device"


def test_groups_that_are_none(pool: RankPool) -> None:
    with pytest.raises(mlafix.ArgumentError, match='"group": expected a process group, or a call of torch.distributed.init_process_group before this one, got None'):
        Reducer(max_tokens=1, heads=1, head_dim=1)
    for rank, errors in enumerate(pool.same("not_in_group", 3)):
        assert errors == [f'ArgumentError: argument "group": expected a group that has this process (rank {rank} of the default group), got one without it',
                          'ArgumentError: argument "group": expected a process group, or an object with world_size and rank_in_group, got str']


@pytest.mark.parametrize("cut", ["heads", "tokens", "none"])
def test_calls_that_are_too_large_are_exchanged_where_asked(pool: RankPool, cut: str) -> None:
    for ranks in (2, 3):
        assert pool.same("overflowing", ranks, [2, 3, 1, 9, 0, 2], {"cut": cut}) == [[True] * 6] * ranks


def test_the_example_says_how_it_is_started() -> None:
    program = "examples/context_parallel/main.py"
    environment = {name: value for name, value in os.environ.items() if name != "RANK"}
    result = subprocess.run([sys.executable, Path(__file__).parents[3] / program], capture_output=True, text=True, env=environment)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [f"expected a process for each rank, got one: run torchrun --nproc-per-node 4 {program}"]


def test_inputs_of_a_number_that_is_none(pool: RankPool) -> None:
    for result in pool.run("inputs_of", [("a",)] * 2):
        assert str(result) == "argument \"tokens\": expected an int from 0 to the reducer's 4, got 'a'"
