"""Tests test/peers, which runs the engines' own tests on the drop-ins of mlafix.compat: the tests run, their outcomes
are reported correctly, and docs/Peers.md has the results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / "test" / "peers"
PAGE = ROOT / "docs" / "Peers.md"

# The text of a test file with the imports of SGLang's test_fixup_zero_kv.py. A test writes this text to the path that
# test_fixup_zero_kv.py has in SGLang.
FIXUP = """
import pytest
import torch
from sglang.kernels.ops.attention.fixup_zero_kv import fixup_zero_kv_rows
from sglang.test.ci.ci_register import register_cuda_ci
from sglang.test.test_utils import CustomTestCase
from sglang.test.test_utils import something

register_cuda_ci(est_time=1)

@pytest.mark.parametrize("case", range(4))
def test_blanks(case):
    out, lse = torch.ones(3, 2, 8, device="cuda"), torch.ones(3, 2, device="cuda")
    lens = torch.tensor([1, 0], dtype=torch.int32, device="cuda")
    fixup_zero_kv_rows(out, lse, lens, torch.tensor([0, 1, 3], dtype=torch.int32, device="cuda"), 2)
    torch.cuda.synchronize()
    assert out[:, 0, 0].tolist() == [1, 0, 0] and lse[:, 0].tolist() == [1, float("-inf"), float("-inf")]

def test_that_fails():
    assert 1 == 2, "as it should"

def test_of_something_else():
    something(1)
"""
DOMINANT = """
from vllm.v1.attention.ops.dcp_alltoall import _lse_weighted_combine
import torch

def test_dominant_rank():
    assert _lse_weighted_combine(torch.ones(2, 1, 1, 4), torch.zeros(2, 1, 1)).shape == (1, 4)

def test_that_is_left_out():
    assert False

def test_combine():
    out, lse = _lse_weighted_combine(torch.ones(2, 1, 1, 4), torch.zeros(2, 1, 1), return_lse=True, is_lse_base_on_e=False)
    assert out.tolist() == [[[1.0] * 4]] and lse.tolist() == [[1.0]]
"""

# For each engine, the path and the text of a test file that also imports modules of the engine itself.
# test_releases_are_loaded_as_their_wheels_have_them takes these modules from the engine's wheel.
OF_RELEASES = {
    "vllm": ("tests/v1/attention/test_dcp_a2a_pack_mask.py", """
import torch
from vllm.platforms import current_platform
from vllm.v1.attention.ops.dcp import _lse_weighted_combine_cpu, mask_dcp_empty_shards_
from vllm.v1.attention.ops.triton_merge_attn_states import merge_attn_states

def test_masks():
    assert not current_platform.is_xpu() and current_platform.device_type == "cuda" and merge_attn_states.__module__.endswith("triton_merge_attn_states")
    lse = torch.zeros(3, 2, device="cuda")
    mask_dcp_empty_shards_(lse, torch.zeros(0, dtype=torch.int32, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda"))
    assert torch.isneginf(lse).all() and _lse_weighted_combine_cpu(torch.ones(2, 1, 1, 4), torch.zeros(2, 1, 1)).shape == (1, 1, 4)
"""),
    "sglang": ("test/registered/kernels/test_dcp_lse_combine.py", """
from sglang.kernels.ops.attention.dcp_kernels import _lse_pack_dim, dcp_pack_a2a_send
from sglang.srt.layers.dcp import dcp_a2a_lse_reduce
import torch

def test_packs():
    assert _lse_pack_dim(torch.bfloat16) == 2 and dcp_a2a_lse_reduce.__module__ == "sglang.srt.layers.dcp.comm"
    rows, lses = torch.ones(2, 4, 8, device="cuda"), torch.zeros(2, 4, device="cuda")
    out, out_lse = torch.empty(2, 2, 2, 8, device="cuda"), torch.empty(2, 2, 2, device="cuda")
    dcp_pack_a2a_send(rows, lses, dst_o=out, dst_lse=out_lse)
    assert (out == 1).all() and (out_lse == 0).all()
"""),
}

HELIX = """
import unittest

import pytest
import tensorrt_llm
import torch
from parameterized import parameterized

class TestHelix(unittest.TestCase):
    def setUp(self):
        tensorrt_llm.logger.set_level("warning")

    @parameterized.expand([(2, 2.0), (3, 1.0)])
    def test_merges(self, ranks, scale):
        rows, stats = torch.ones(ranks, 2, 8, dtype=torch.float16, device="cuda"), torch.ones(ranks, 2, 1, 2, device="cuda")
        with self.subTest(ranks=ranks):
            assert (torch.ops.trtllm.helix_post_process(rows, stats, scale) == scale).all()
        with pytest.raises(RuntimeError):
            torch.ops.trtllm.helix_post_process(rows, stats[:1], scale)

    @parameterized.expand([("nccl",)])
    def test_helix_postprocess_alignment_requirements(self, layout):
        assert False
"""


def peers(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PEERS), *map(str, arguments)], capture_output=True, text=True, timeout=300)


def checkout(folder: Path, file: str, text: str) -> Path:
    path = folder / file
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    (folder / "VERSION_OF_CHECKOUT").write_text("made here\n", encoding="utf-8")
    return folder


def test_outcomes_are_told_as_they_were(tmp_path: Path) -> None:
    """Outcomes of the cases are counted correctly, with two processes that each run a share of them."""
    sglang = checkout(tmp_path / "sglang", "test/registered/kernels/test_fixup_zero_kv.py", FIXUP)
    made = peers("--sglang", sglang, "--on-cpu", "--jobs", 2, "--json", tmp_path / "results.json")
    assert made.returncode == 1, made.stdout + made.stderr
    ((suite,),) = [run["suites"] for run in json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))]
    assert suite["outcomes"] == {"passed": 4, "failed": 1, "skipped": 1, "faults": 0} and suite["version"] == "made here"
    assert suite["reasons"]["skipped"] == {"needs sglang.test.test_utils.something, which is not a part of mlafix.compat": 1}
    assert "as it should" in next(iter(suite["reasons"]["failed"]))
    assert "| sglang | made here | `test/registered/kernels/test_fixup_zero_kv.py` (1) | 6 | 4 | 1 | 1 |" in made.stdout


def test_a_part_of_two_engines_cases_whose_failures_are_the_engines_own(tmp_path: Path) -> None:
    """A test that also fails with the engine's own function is counted as a fault of the engine. A test that expects an
    error of the engine is skipped. Results of several machines become one table each."""
    vllm = checkout(tmp_path / "vllm", "tests/distributed/test_dcp_a2a.py", DOMINANT)
    helix = checkout(tmp_path / "helix", "tests/unittest/_torch/thop/parallel/test_helix_postprocess.py", HELIX)
    made = peers("--tensorrt-llm", helix, "--vllm", vllm, "--on-cpu", "--every", 2, "--jobs", 1, "--json", tmp_path / "one.json")
    assert made.returncode == 0 and "(2) | 2 (one in 2) | 1 | 0 | 1 |" in made.stdout, made.stdout + made.stderr
    assert "1 skipped: asks for an error of the engine's own: here a head dim of 4 is merged." in made.stdout
    one = (tmp_path / "one.json").read_text(encoding="utf-8")
    ((first, second),) = [run["suites"] for run in json.loads(one)]
    assert (first["engine"], second["engine"]) == ("vllm", "tensorrt-llm")
    assert first["outcomes"] == {"passed": 1, "failed": 1, "skipped": 0, "faults": 1}
    assert "over the engine's own function too" in next(iter(first["reasons"]["failed"]))
    (tmp_path / "two.json").write_text(one.replace("the CPU", "a GPU"), encoding="utf-8")
    told = peers("--from", tmp_path / "one.json", "--from", tmp_path / "two.json", "--from", tmp_path / "one.json").stdout
    assert [line.partition(",")[0] for line in told.splitlines() if line.startswith("On ")] == ["On the CPU", "On a GPU"]
    assert told.count("| tensorrt-llm | made here |") == 3


@pytest.mark.parametrize("engine", OF_RELEASES)
def test_releases_are_loaded_as_their_wheels_have_them(engine: str, tmp_path: Path) -> None:
    """Tests run with the Python files of an engine's wheel, such as vLLM 0.33.0 or SGLang 0.5.23. The wheel is the last
    one by name in the folder MLAFIX_ENGINE_WHEELS, which scripts/engine-drift --keep fills."""
    wheels = sorted(Path(os.environ.get("MLAFIX_ENGINE_WHEELS", "/nowhere")).glob(f"{engine}-*.whl"))
    if not wheels:
        pytest.skip(f"MLAFIX_ENGINE_WHEELS has no wheel of {engine}")
    with zipfile.ZipFile(wheels[-1]) as archive:
        archive.extractall(tmp_path, [name for name in archive.namelist() if name.startswith(f"{engine}/") and name.endswith(".py")])
    made = peers(f"--{engine}", checkout(tmp_path, *OF_RELEASES[engine]), "--on-cpu", "--jobs", 1)
    assert made.returncode == 0 and "| 1 | 1 | 0 | 0 |" in made.stdout, made.stdout + made.stderr


def test_a_file_that_is_not_collected_is_a_failure(tmp_path: Path) -> None:
    broken = checkout(tmp_path / "vllm", "tests/distributed/test_dcp_a2a.py", "import no_such_module\n")
    made = peers("--vllm", broken, "--on-cpu", "--jobs", 1)
    assert made.returncode == 1 and "not collected: " in made.stdout and "no_such_module" in made.stdout, made.stdout + made.stderr
    assert peers().returncode != 0


def test_the_page_holds_the_recorded_run() -> None:
    sys.path.insert(0, str(PEERS))
    try:
        from peer_report import BEGIN, END, fill
    finally:
        sys.path.remove(str(PEERS))
    page, recorded = PAGE.read_text(encoding="utf-8"), PEERS / "results.json"
    if recorded.is_file():
        assert page == fill(page, json.loads(recorded.read_text(encoding="utf-8"))), f"run {PEERS} --from {recorded} --markdown {PAGE}"
    else:
        assert page.partition(BEGIN)[2].partition(END)[0].strip() == "No run is recorded."
