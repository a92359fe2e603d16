"""benchmarks/python: what it writes, that it catches wrong results, and that baselines are called as they want to be."""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "python"
MODULES = ("work", "measure", "ours", "torch_baselines", "engine_baselines")
CPU = torch.device("cpu")


@pytest.fixture
def bench() -> Iterator[types.SimpleNamespace]:
    """The benchmark's modules."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield types.SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES:
            sys.modules.pop(name, None)


def small_cases(bench: types.SimpleNamespace) -> dict[str, Any]:
    """One of each group."""
    return {"merge": bench.work.merge_case(3, heads=2, dim=64), "n_way": bench.work.dense_case(4, 3, heads=2, dim=64),
            "combine": bench.work.combine_case(3, 2, heads=2, dim=64), "ragged": bench.work.ragged_case(9, heads=2, dim=64),
            "fixup": bench.work.fixup_case("small", [3, 1, 2], [True, False, True], heads=2, dim=64)}


def run(case: Any, prepare: Callable[[Any], Callable[[], object]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The buffers before and after."""
    before = case.make(torch.Generator().manual_seed(0), CPU)
    after = {name: tensor.clone() for name, tensor in before.items()}
    prepare(after)()
    return before, after


@pytest.mark.parametrize("group", ["merge", "n_way", "combine", "ragged", "fixup"])
def test_right_results_pass_and_wrong_ones_do_not(bench: types.SimpleNamespace, group: str) -> None:
    case = small_cases(bench)[group]
    for prepare in (bench.ours.OURS[group], bench.torch_baselines.baselines_of(group)["torch"]):
        before, after = run(case, prepare)
        case.check(before, after)
        for name in ("out", "out_lse" if "out_lse" in after else "lse"):
            broken = {**after, name: after[name].clone()}
            broken[name].reshape(-1)[0] = 77
            with pytest.raises(AssertionError, match="expected"):
                case.check(before, broken)


def test_triton_kernels_are_right(bench: types.SimpleNamespace) -> None:
    """On a GPU where there is one, else in Triton's interpreter."""
    pytest.importorskip("triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    script = """if True:
        import sys, torch, triton_baselines, work
        device = torch.device(sys.argv[1])
        cases = {"merge": work.merge_case(3, heads=2, dim=64), "n_way": work.dense_case(4, 3, heads=2, dim=64),
                 "combine": work.combine_case(3, 2, heads=2, dim=64), "ragged": work.ragged_case(9, heads=2, dim=64)}
        for group, case in cases.items():
            for name, prepare in triton_baselines.baselines_of(group).items():
                before = case.make(torch.Generator(device).manual_seed(0), device)
                after = {name: tensor.clone() for name, tensor in before.items()}
                prepare(after)()
                case.check(before, after)
                print(group, name, sep=": ")
    """
    interpreter = {"TRITON_INTERPRET": "1"} if device == "cpu" else {}
    done = subprocess.run([sys.executable, "-c", script, device], cwd=FOLDER, capture_output=True, text=True, timeout=300,
                          env={**os.environ, **interpreter, "PYTHONPATH": str(FOLDER)})
    if device == "cpu" and "TypeError: only 0-dimensional arrays can be converted to Python scalars" in done.stderr:
        pytest.skip("Triton's interpreter runs no loop over range(n) of an argument with this version of numpy, and there is no GPU")
    names = ["merge: triton", "n_way: triton", "combine: triton", "combine: triton, tile", "ragged: triton"]
    assert done.stdout.splitlines() == names, done.stderr


def test_engines_are_called_as_they_want_to_be(bench: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins with the engines' public signatures and layouts."""
    merge = bench.torch_baselines.merge

    def vllm(output: Any, output_lse: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any) -> None:
        merge(output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse)

    def vllm_triton(output: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output_lse: Any = None) -> None:
        merge(output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse)

    def merge_state_v2(v_a: Any, s_a: Any, v_b: Any, s_b: Any, v_merged: Any = None, s_merged: Any = None) -> Any:
        assert s_a.is_contiguous() and s_merged.shape == s_a.shape == v_a.shape[:2]
        merge(v_merged, s_merged.T, v_a, s_a.T, v_b, s_b.T)
        return v_merged, s_merged

    def merge_state(v_a: Any, s_a: Any, v_b: Any, s_b: Any) -> Any:
        v, s = torch.empty_like(v_a), torch.empty_like(s_a)
        merge(v, s.T, v_a, s_a.T * math.log(2), v_b, s_b.T * math.log(2))
        return v, s / math.log(2)

    def merge_states(v: Any, s: Any) -> Any:
        out, lse = torch.empty_like(v[:, 0]), torch.empty_like(s[:, 0])
        bench.torch_baselines.merge_dense(out, lse, v, s * math.log(2))
        return out, lse / math.log(2)

    def variable_length_merge_states(v: Any, s: Any, indptr: Any) -> Any:
        out, lse = v.new_empty(len(indptr) - 1, *v.shape[1:]), s.new_empty(len(indptr) - 1, *s.shape[1:])
        bench.torch_baselines.ragged(out, lse, v, s * math.log(2), indptr)
        return out, lse / math.log(2)

    def flash_attn_combine(out_partial: Any, lse_partial: Any, out: Any = None, out_dtype: Any = None) -> Any:
        assert lse_partial.stride(-2) == 1
        lse = torch.empty_like(lse_partial[0])
        bench.torch_baselines.combine(out, lse, out_partial, lse_partial)
        return out, lse

    stand_ins = {"vllm._custom_ops": {"merge_attn_states": vllm},
                 "vllm.v1.attention.ops.triton_merge_attn_states": {"merge_attn_states": vllm_triton},
                 "sgl_kernel": {"merge_state_v2": merge_state_v2},
                 "flashinfer": {"merge_state": merge_state, "merge_states": merge_states},
                 "flashinfer.triton.cascade": {"variable_length_merge_states": variable_length_merge_states},
                 "flash_attn_interface": {"flash_attn_combine": flash_attn_combine},
                 "flash_attn.cute.interface": {"flash_attn_combine": flash_attn_combine}}
    for group, case in small_cases(bench).items():
        for name, prepare in bench.engine_baselines.baselines_of(group).items():
            for module, functions in stand_ins.items():
                monkeypatch.delitem(sys.modules, module, raising=False)
                monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**functions))
            before, after = run(case, prepare)
            if "lse_base_2" in after:
                after["out_lse"] = after["lse_base_2"] * math.log(2)
            case.check(before, after)


def test_engines_that_are_not_installed_are_named(bench: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sgl_kernel", None)
    case = small_cases(bench)["merge"]
    with pytest.raises(bench.work.Unavailable, match="no sgl_kernel.merge_state_v2"):
        run(case, bench.engine_baselines.baselines_of("merge")["sglang"])


def test_writes_the_same_form_as_mlafix_bench(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER), "--device", "cpu", "--rounds", "1", "--rotate", "1", "--quick"]
    done = subprocess.run([*command, "--case", "merge/.*n16$", "--json", str(tmp_path / "out.json")], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["schema"] == 1 and result["tool"].startswith("mlafix-python ") and result["device"] == "cpu"
    [case] = result["cases"]
    assert case["name"] == "merge/bf16_h128_d128/n16" and case["bytes"] == {"read": 1064960, "written": 532480}
    assert [entry["name"] for entry in case["contenders"]] == ["mlafix", "torch"]
    assert set(case["contenders"][0]["us"]) == {"p10", "median", "p90"}
    assert case["contenders"][1]["against"] == "mlafix"

    wrong = subprocess.run([*command, "--case", "no-such-case"], capture_output=True, text=True, timeout=300)
    assert wrong.returncode == 2 and "--case: expected to match a case, got 'no-such-case'" in wrong.stderr


def results_of(script: str, folder: Path) -> Any:
    """Runs benchmarks that make their own buffers on a CPU. It fails where its kernels do not agree."""
    file = folder / "results.json"
    subprocess.run([sys.executable, FOLDER.parent / script, "--device", "cpu", "--quick", "--json", file], check=True, capture_output=True)
    return json.loads(file.read_text())


def test_guards_are_measured_on_a_cpu(tmp_path: Path) -> None:
    """Both kernels of each pair give the same rows; no time is looked at."""
    rows = results_of("guards.py", tmp_path)["rows"]
    assert [row["case"] for row in rows] == ["merge of 4 states", "paged copy", "scatter"] and all(row["ratio"] > 0 for row in rows)


def test_block_scales_are_measured_on_a_cpu(tmp_path: Path) -> None:
    cases = results_of("block_scales.py", tmp_path)["cases"]
    assert [case["dim"] for case in cases] == [128, 512] and all(
        set(case["us"]) == {"fused", "library", "words", "pair", "merge", "fp4", "fp4_pair"} for case in cases)


def test_rotary_embedding_is_measured_on_a_cpu(tmp_path: Path) -> None:
    cases = results_of("rope.py", tmp_path)["cases"]
    assert [case["dim"] for case in cases] == [64, 128] and all(set(case["us"]) == {"halves", "pairs", "copy", "rows"} for case in cases)


def test_a_chain_is_measured_on_a_cpu(tmp_path: Path) -> None:
    [case] = results_of("chain.py", tmp_path)["cases"]
    assert set(case["us"]) == {"static", "static, two", "static, three", "groups", "groups, three"}
