"""Tests that the programs of benchmarks/python print what they should, detect wrong results, and call the baselines
correctly."""

from __future__ import annotations

import importlib
import json
import math
import os
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "python"
MODULES = ("work", "cases", "measure", "ours", "torch_baselines", "engine_baselines")
CPU = torch.device("cpu")


@pytest.fixture
def bench() -> Iterator[types.SimpleNamespace]:
    """Returns the benchmark's modules."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield types.SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture
def run_program(bench: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Returns a function that runs a program as if from its command line, and returns its status. The program runs in
    this process, because importing torch and its compiler in a new one takes seconds."""

    def run_it(file: Path, *arguments: object) -> int:
        with monkeypatch.context() as patch, torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            patch.setattr(sys, "argv", [str(file), *map(str, arguments)])
            patch.setattr(sys, "path", [*sys.path])
            try:
                runpy.run_path(str(file), run_name="__main__")
            except SystemExit as end:
                if not isinstance(end.code, int):
                    raise  # the exit code is an error message
                return end.code
            return 0

    return run_it


def small_cases(bench: types.SimpleNamespace) -> dict[str, Any]:
    """Returns one case of each group."""
    return {"merge": bench.work.merge_case(3, heads=2, dim=64), "n_way": bench.work.dense_case(4, 3, heads=2, dim=64),
            "combine": bench.work.combine_case(3, 2, heads=2, dim=64), "ragged": bench.work.ragged_case(9, heads=2, dim=64),
            "fixup": bench.work.fixup_case("small", [3, 1, 2], [True, False, True], heads=2, dim=64),
            "fixup_rows_first": bench.work.fixup_case("small", [3, 1, 2], [True, False, True], heads=2, dim=64, rows_first=True)}


def cases_for_engines(bench: types.SimpleNamespace) -> dict[str, Any]:
    """Returns one case of each group whose only baselines are engines."""
    cases, work = bench.cases, bench.work
    return {"shapes": work.merge_case(3, 2, 64, "shapes"), "rows_first": work.merge_case(3, 2, 64, "rows_first"), "threshold": cases.threshold_case(4, 2, 64),
            "merge_fp8": cases.fp8_case(3, 2, 64), "in_place": cases.in_place_case(4, 2, 64, masked=True),
            "states": work.dense_case(4, 3, 2, 64, "states"), "mask": cases.mask_case(2, 2, 2, 64, rows=True)}


def run(case: Any, prepare: Callable[[Any], Callable[[], object]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the contents of the buffers before and after a run."""
    before = case.make(torch.Generator().manual_seed(0), CPU)
    after = {name: tensor.clone() for name, tensor in before.items()}
    prepare(after)()
    return before, after


GROUPS = ("merge", "n_way", "combine", "ragged", "fixup", "fixup_rows_first")
ENGINE_GROUPS = ("shapes", "rows_first", "threshold", "merge_fp8", "in_place", "states", "mask")
RESULTS = ("out", "out_lse", "v", "s", "lse")


@pytest.mark.parametrize("group", [*GROUPS, *ENGINE_GROUPS])
def test_right_results_pass_and_wrong_ones_do_not(bench: types.SimpleNamespace, group: str) -> None:
    case = {**small_cases(bench), **cases_for_engines(bench)}[group]
    torch_only = [prepare for name, prepare in bench.torch_baselines.baselines_of(group).items() if name == "torch"]
    for prepare in (bench.ours.OURS[group], *torch_only):
        before, after = run(case, prepare)
        case.check(before, after)
        written = [name for name in RESULTS if name in after and not torch.equal(before[name].float(), after[name].float())]
        assert written
        for name in written:
            broken = {**after, name: after[name].clone()}
            broken[name].view(torch.uint8 if name == "out" and group == "merge_fp8" else broken[name].dtype).reshape(-1)[0] = 77
            with pytest.raises(AssertionError, match="expected"):
                case.check(before, broken)


def test_every_case_has_an_implementation_of_ours(bench: types.SimpleNamespace) -> None:
    cases = bench.cases.all_cases()
    assert len({case.name for case in cases}) == len(cases)
    assert {case.name.split("/")[0] for case in cases} == set(bench.ours.OURS) == {*GROUPS, *ENGINE_GROUPS}


def test_triton_kernels_are_right(bench: types.SimpleNamespace) -> None:
    """The kernels in Triton give right results, on a GPU if there is one, else in Triton's interpreter."""
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


def engines_of(bench: types.SimpleNamespace) -> dict[str, dict[str, Callable[..., Any]]]:
    """Returns imitations of the engines' functions: for each module, the functions by name. They have the engines'
    public signatures and layouts, and compute in torch."""
    merge = bench.torch_baselines.merge

    def vllm(output: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output_lse: Any = None,
             prefill_tokens_with_context: int | None = None, output_scale: Any = None) -> None:
        n = len(output) if prefill_tokens_with_context is None else prefill_tokens_with_context
        rows = torch.empty(output.shape)
        lse = torch.empty_like(prefix_lse)
        merge(rows[:n], lse[:, :n], prefix_output[:n], prefix_lse[:, :n], suffix_output[:n], suffix_lse[:, :n])
        rows[n:], lse[:, n:] = suffix_output[n:], suffix_lse[:, n:]
        output.copy_(rows if output_scale is None else rows / output_scale)
        if output_lse is not None:
            output_lse.copy_(lse)

    def mask_empty_context_lse(lse: Any, query_start_loc: Any, context_start_loc: Any) -> Any:
        empty = torch.repeat_interleave(context_start_loc.diff() == 0, query_start_loc.diff())
        lse[:, empty] = -math.inf
        return empty

    def mask_empty_context(lse: Any, output: Any, query_start_loc: Any, context_start_loc: Any) -> None:
        output[mask_empty_context_lse(lse, query_start_loc, context_start_loc)] = 0

    def merge_state_v2(v_a: Any, s_a: Any, v_b: Any, s_b: Any, v_merged: Any = None, s_merged: Any = None) -> Any:
        assert s_a.is_contiguous() and s_a.shape == v_a.shape[:2]
        v_merged = torch.empty_like(v_a) if v_merged is None else v_merged
        s_merged = torch.empty_like(s_a) if s_merged is None else s_merged
        merge(v_merged, s_merged.T, v_a, s_a.T, v_b, s_b.T)
        return v_merged, s_merged

    def fixup_zero_kv_rows(out: Any, lse: Any, kv_lens: Any, cum_seq_lens: Any, max_seq_len: int) -> None:
        assert max_seq_len == int(cum_seq_lens.diff().max())
        bench.torch_baselines.fixup_rows_first(out, lse, kv_lens, cum_seq_lens)

    def reducev(logits: Any, lse: Any, q: Any, o: Any, v_scale: float, v_buffer: Any, kv_indptr: Any, num_kv_splits: Any,
                max_kv_splits: int, sinks: Any = None) -> None:
        assert logits.shape == (*q.shape[:2], max_kv_splits, v_buffer.shape[-1]) and kv_indptr[-1] == len(q) * 32 * max_kv_splits
        weights = torch.softmax(lse, -1)[..., None]
        o.copy_((logits * weights).sum(2) * v_scale)

    def merge_state(v_a: Any, s_a: Any, v_b: Any, s_b: Any) -> Any:
        v, s = torch.empty_like(v_a), torch.empty_like(s_a)
        merge(v, s.T, v_a, s_a.T * math.log(2), v_b, s_b.T * math.log(2))
        return v, s / math.log(2)

    def merge_state_in_place(v: Any, s: Any, v_other: Any, s_other: Any, mask: Any = None) -> None:
        merged, lse = merge_state(v, s, v_other, s_other)
        some = torch.ones(len(v), dtype=torch.bool) if mask is None else mask
        v[some], s[some] = merged[some], lse[some]

    def merge_states(v: Any, s: Any) -> Any:
        out, lse = torch.empty_like(v[:, 0]), torch.empty_like(s[:, 0])
        bench.torch_baselines.merge_dense(out, lse, v, s * math.log(2))
        return out, lse / math.log(2)

    def variable_length_merge_states(v: Any, s: Any, indptr: Any, v_merged: Any = None, s_merged: Any = None) -> Any:
        out = v.new_empty(len(indptr) - 1, *v.shape[1:]) if v_merged is None else v_merged
        lse = s.new_empty(len(indptr) - 1, *s.shape[1:]) if s_merged is None else s_merged
        bench.torch_baselines.ragged(out, lse, v, s * math.log(2), indptr)
        lse.div_(math.log(2))
        return out, lse

    def flash_attn_combine(out_partial: Any, lse_partial: Any, out: Any = None, out_dtype: Any = None) -> Any:
        assert lse_partial.stride(-2) == 1
        lse = torch.empty_like(lse_partial[0])
        out = torch.empty_like(out_partial[0], dtype=out_dtype) if out is None else out
        bench.torch_baselines.combine(out, lse, out_partial, lse_partial)
        return out, lse

    combine = {"flash_attn_combine": flash_attn_combine}
    sglang_ops = "sglang.kernels.ops.attention"
    return {"vllm._custom_ops": {"merge_attn_states": vllm},
            "vllm.v1.attention.ops.triton_merge_attn_states": {"merge_attn_states": vllm, "mask_empty_context": mask_empty_context,
                                                               "mask_empty_context_lse": mask_empty_context_lse},
            "vllm.v1.attention.ops.merge_attn_states": {"merge_attn_states": vllm},
            "sgl_kernel": {"merge_state_v2": merge_state_v2}, f"{sglang_ops}.merge_state": {"merge_state_triton": merge_state_v2},
            f"{sglang_ops}.decode_attention": {"_decode_softmax_reducev_fwd": reducev, "_MIN_BLOCK_KV": 32},
            f"{sglang_ops}.fixup_zero_kv": {"fixup_zero_kv_rows": fixup_zero_kv_rows},
            "flashinfer": {"merge_state": merge_state, "merge_states": merge_states, "merge_state_in_place": merge_state_in_place},
            "flashinfer.triton.cascade": {"variable_length_merge_states": variable_length_merge_states},
            "flashinfer_cuda": dict.fromkeys(("variable_length_merge_states", "variable_length_merge_states_pdl"), variable_length_merge_states),
            "flash_attn_interface": combine, "flash_attn.cute.interface": combine}


def test_engines_are_called_as_they_want_to_be(bench: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, functions in engines_of(bench).items():
        monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**functions))
    seen = 0
    for group, case in {**small_cases(bench), **cases_for_engines(bench)}.items():
        for prepare in bench.engine_baselines.baselines_of(group).values():
            before, after = run(case, prepare)
            if "lse_base_2" in after:
                after["out_lse"] = after["lse_base_2"] * math.log(2)
            case.check(before, after)
            seen += 1
    assert seen == 22


def test_public_calls_of_engines_and_of_drop_ins_run(bench: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, functions in engines_of(bench).items():
        monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**functions))
    calls = bench.ours.engine_calls(bench.measure.Settings(CPU, 1, 1.0, 1))
    assert [name for name in calls if name.startswith("mlafix: ")] == [
        "mlafix: vllm.merge_attn_states", "mlafix: sglang.merge_state_v2, outputs given", "mlafix: sglang.merge_state_v2",
        "mlafix: flashinfer.merge_state", "mlafix: flashinfer.merge_state_in_place", "mlafix: flashinfer.merge_states",
        "mlafix: flash_attn.flash_attn_combine", "mlafix: flashinfer.variable_length_merge_states", "mlafix: sglang.fixup_zero_kv_rows",
        "mlafix: vllm.mask_empty_context_lse"]
    assert len(calls) == 23


def test_a_merge_is_called_in_every_way(bench: types.SimpleNamespace) -> None:
    calls = bench.ours.merge_calls(CPU)
    assert list(calls) == [
        "bound(stream)", "bound()", "ops.merge_attn_states, outputs given", "ops.merge_attn_states, outputs allocated",
        "compat.vllm.merge_attn_states", "compat.flash_attn.flash_attn_combine", "torch.empty, two outputs", "torch.ops.mlafix.merge_attn_states"]
    assert all(timer.timeit(1) > 0 for timer in calls.values())


def test_calls_take_turns_and_each_goes_first(bench: types.SimpleNamespace) -> None:
    calls: list[str] = []
    implementations = {name: lambda name=name: calls.append(name) for name in "abc"}
    waits: list[int] = []
    times = bench.ours.run_rounds(implementations, 6, 2, lambda: waits.append(len(calls)))
    assert {name: len(each) for name, each in times.items()} == {"a": 6, "b": 6, "c": 6}
    # In its turn, an implementation is called once without timing and twice with it. Before and after the timed calls,
    # run_rounds() waits for the GPU.
    turns = [calls[i:i + 3] for i in range(0, len(calls), 3)]
    assert all(len(set(turn)) == 1 for turn in turns)
    assert all({turn[0] for turn in turns[i:i + 3]} == {"a", "b", "c"} for i in range(0, len(turns), 3))
    assert {turns[i][0] for i in range(0, len(turns), 3)} == {"a", "b", "c"}
    assert waits == [n for i in range(0, len(calls), 3) for n in (i + 1, i + 3)]
    assert bench.ours.run_rounds({}, 2, 1, lambda: None) == {}


def test_engines_that_are_not_installed_are_named(bench: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sgl_kernel", None)
    case = cases_for_engines(bench)["rows_first"]
    with pytest.raises(bench.work.Unavailable, match="no sgl_kernel.merge_state_v2"):
        run(case, bench.engine_baselines.baselines_of("rows_first")["sglang"])


def test_writes_the_same_form_as_mlafix_bench(run_program: Callable[..., int], tmp_path: Path) -> None:
    given = "--device", "cpu", "--rounds", "1", "--rotate", "1", "--quick", "--case", "merge/.*n16$"
    assert run_program(FOLDER, *given, "--json", tmp_path / "out.json") == 0
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["schema"] == 1 and result["tool"].startswith("mlafix-python ") and result["device"] == "cpu"
    [case] = result["cases"]
    assert case["name"] == "merge/bf16_h128_d128/n16" and case["bytes"] == {"read": 1064960, "written": 532480}
    assert [entry["name"] for entry in case["contenders"]] == ["mlafix", "torch"]
    assert set(case["contenders"][0]["us"]) == {"p10", "median", "p90"}
    assert case["contenders"][1]["against"] == "mlafix"


def test_a_case_that_is_not_there_is_an_error(run_program: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(FOLDER, "--device", "cpu", "--quick", "--case", "no-such-case") == 2
    assert "--case: expected to match a case, got 'no-such-case'" in capsys.readouterr().err


@pytest.fixture
def results_of(run_program: Callable[..., int], tmp_path: Path) -> Callable[[str], Any]:
    """Returns a function that runs a script of benchmarks/ on the CPU and returns its results. The script fails if its
    kernels disagree."""

    def results(script: str) -> Any:
        file = tmp_path / "results.json"
        assert run_program(FOLDER.parent / script, "--device", "cpu", "--quick", "--json", file) == 0
        return json.loads(file.read_text())

    return results


def test_guards_are_measured_on_a_cpu(results_of: Callable[[str], Any]) -> None:
    """The two kernels of each pair give the same rows. Their times are not checked."""
    rows = results_of("guards.py")["rows"]
    assert [row["case"] for row in rows] == ["merge of 4 states", "paged copy", "scatter"] and all(row["ratio"] > 0 for row in rows)


def test_rows_of_engines_are_measured_on_a_cpu(results_of: Callable[[str], Any]) -> None:
    """On a CPU, the script measures no kernels of engines, only ours and torch's, and compares their results."""
    cases = results_of("engine_rows.py")["cases"]
    assert [case["case"] for case in cases] == ["add_norm", "add_norm_fp8", "add_norm_groups", "store", "store_fp8", "experts", "zero", "no_indices", "gate", "gate_heads"]
    assert all("mlafix" in case["us"] for case in cases) and sum(len(case["us"]) > 1 for case in cases) == 7


def test_checks_are_measured_on_a_cpu(results_of: Callable[[str], Any]) -> None:
    [case] = results_of("checks.py")["cases"]
    assert set(case["us"]) == {"read", "check_states", "with keys", "from the host", "visible_keys", "read of three", "check_merge"}
