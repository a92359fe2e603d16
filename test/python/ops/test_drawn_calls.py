"""Tests random calls of the functions of `mlafix.ops` and `mlafix.compat` against f64. The calls vary in optional
arguments, layouts, bases, formats, aliases and special values.

    PYTHONPATH=PACKAGE:test/python python test/python/ops/test_drawn_calls.py [--seed N] [--seconds S] [--where numpy|torch|cuda] [FUNCTION…]

For each wrong call, the script prints the options that repeat this call, and the traceback.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from typing import Callable

import pytest

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

from drawing import Draw, torch  # noqa: E402
from drawn_merges import MERGES  # noqa: E402
from drawn_rows import ROWS  # noqa: E402

DRAWERS: dict[str, Callable[[Draw, str], None]] = {**MERGES, **ROWS}
PLACES = ["numpy", *(["torch"] if torch is not None else [])]
CALLS = 4  # how often each function is called on each device


BY_OTHER_TESTS = {
    **dict.fromkeys(("visible_keys", "check_states", "check_merge", "check_attention", "check_blocks", "check_metadata"), "test_ops_checks.py"),
    "aiter.mla_reduce_v1": "test_compat_maps.py", "flash_mla.flash_mla_combine": "test_compat_maps.py", "sglang.attn_res_fused_tma": "test_ops_depth.py",
    "sglang.get_dcp_lens": "test_compat_chunks.py", "sglang.localize_dcp_indices": "test_compat_chunks.py",
    "torch_context_parallel.SDPAMerger": "test_compat_chunks.py", "vllm.accumulate_mla_context_chunk": "test_compat_chunks.py",
    "vllm.compute_token_to_req_indices": "test_compat_chunks.py", "vllm.init_mla_context_partial": "test_compat_chunks.py",
    "vllm.mask_dcp_empty_shards_": "test_compat_ranks.py", "vllm.prepare_dcp_local_seq_lens": "test_compat_chunks.py",
}  # fmt: skip
"""Functions without a drawer, and the files with tests of their results."""

passed: set[str] = set()
"""The optional arguments that calls of this process have passed, as "function.argument"."""


def draw(name: str, seed: int, where: str) -> None:
    made = Draw([seed, *name.encode()], where)
    DRAWERS[name](made, name)
    passed.update(made.passed)


def test_every_function_is_drawn() -> None:
    programs = pytest.importorskip("programs_of_torch")
    assert programs.all_functions() - programs.WITHOUT == {*DRAWERS, *BY_OTHER_TESTS}


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", DRAWERS)
def test_random_calls_hold_against_f64(name: str, where: str) -> None:
    for seed in range(CALLS):
        try:
            draw(name, seed, where)
        except Exception as error:
            raise AssertionError(f"--seed {seed} --where {where} --calls 1 {name}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description="Random calls against f64.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=10**9, help="of each function")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--where", choices=["numpy", "torch", "cuda"], default="numpy")
    parser.add_argument("functions", nargs="*")
    given = parser.parse_args()
    end, made, wrong = time.monotonic() + given.seconds, 0, 0
    for seed in range(given.seed, given.seed + given.calls):
        for name in given.functions or DRAWERS:
            try:
                draw(name, seed, given.where)
            except Exception:
                wrong += 1
                print(f"--seed {seed} --where {given.where} --calls 1 {name}\n{traceback.format_exc(limit=-3)}", flush=True)
            made += 1
        if time.monotonic() > end:
            break
    print(f"{made} calls of {len(given.functions or DRAWERS)} functions, {wrong} wrong; {len(passed)} optional arguments were passed")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
