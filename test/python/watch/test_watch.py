"""Tests mlafix.watch on a small engine (standin.py). Each fault that is injected into the engine is reported with its
first step, layer, seam and row, in eager steps and in replays. Runs without a fault have no report."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import standin  # noqa: E402
from mlafix import ArgumentError, UnitError, ops  # noqa: E402
from mlafix import __main__ as command_line  # noqa: E402
from mlafix.engines import imports  # noqa: E402
from mlafix.watch import Choice, Watch, choice_of, engines, functions, poison_cache, watch, watching  # noqa: E402
from mlafix.watch.choice import SEAMS  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
FIRST = 4  # the step at which faults begin

NAMED = {
    "stale rows": ("0", "attention", "context chunk 1", "not empty"),
    "wrong base in one path": ("1", "attention", "suffix, recomputed", "another lse"),
    "padding read": ("1", "attention", "suffix", "NaN"),
    "heads swapped": ("2", "attention", "rank 1, recomputed", "another lse"),
    "stale length in a captured graph": ("", "metadata", "metadata", "another length"),
    "a rank's lse scaled": ("2", "reduce", "ranks", "another lse"),
    "recycled page": ("1", "cache", "k cache", "NaN in a block"),
    "fp8 scale of another layer": ("1", "attention", "suffix, recomputed", "another value"),
    "an empty request's +inf": ("0", "attention", "context chunk 1", "not empty"),
    "wrong causal edge": ("0", "attention", "new tokens", "no keys seen"),
    "table entry past the live pages": ("1", "attention", "suffix", "NaN"),
    "accumulated out": ("2", "reduce", "ranks", "NaN"),
}
"""For each fault, with poisoned memory: the layer, the kind of the seam, its name, and the class of the finding."""

ROWS = {"stale rows": [1, 0], "an empty request's +inf": [1, 0], "wrong causal edge": [1, 0], "recycled page": [2, 1]}
"""The first wrong row, for faults that do not begin at the batch's first row. At step FIRST, the second request is the
first one without keys in chunk 1 of its context. With a wrong causal edge, the first request still sees keys, since
padding counts as its tokens. The row of a recycled page is the request and the block in its table."""


def made(fault: str = "", *, replays: bool = False, device: str = "cpu", lines: list[str] | None = None, choice: Choice | None = None, **more: Any) -> standin.Engine:
    chosen = choice or Choice(frozenset(SEAMS), poison=True)
    own = Watch(chosen, say=(lines if lines is not None else []).append, sample=1, **more)
    return standin.Engine(own, fault=fault, fault_step=FIRST, replays=replays, device=device)


def test_without_a_compiler_all_but_the_computation_again_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler, the check that computes attention again is left out. All other checks run, since the wheel
    has their code."""
    lines, tries = [], []

    def refuse(*_: Any, **__: Any) -> None:
        tries.append(1)
        raise UnitError("check_attention: expected the compiler")

    monkeypatch.setattr(ops, "check_attention", refuse)
    own, rows, lse = Watch(Choice(frozenset(SEAMS)), say=lines.append), torch.zeros(3, 2, 8), torch.full((2, 3), -torch.inf)
    for _ in range(2):
        own.step()
        own.attention(rows, lse, rows, rows[None], rows[None], lens=torch.tensor([3]), cu_seqlens=torch.tensor([0, 3]), scale=1.0)
    report = own.finish()
    assert len(tries) == 1 and lines[0] == "mlafix watch: attention is not computed again: check_attention: expected the compiler"
    assert report is not None and report.record["class"] == "no keys seen"


def test_keys_of_tokens_are_counted_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys that each token sees are counted once for all layers of a step. They are counted again for other
    lengths, in a new step, in a capture, when a layer repeats, and when torch has changed the lengths."""
    counted: list[Any] = []
    own, rows = Watch(Choice(frozenset(SEAMS))), torch.zeros(3, 2, 8)
    monkeypatch.setattr(ops, "visible_keys", lambda out, lens, *_, **__: (out.fill_(1), counted.append(lens)))
    lens, other, starts = (torch.tensor(x, dtype=torch.int32) for x in ([4, 1], [4, 2], [0, 2, 3]))

    def layers(lens: Any) -> int:
        counted.clear()
        for own.layer in ("0", "1"):
            own.states("attention", rows + 1, lens=lens, cu_seqlens=starts, causal=True)
        return len(counted)

    own.step()
    assert [layers(lens), layers(other), layers(lens)] == [1, 1, 1]
    own.step()
    assert layers(lens) == 1
    own.step()
    counted.clear()
    for own.layer in ("0", "1"):
        own.states("attention", rows + 1, key_starts=starts, cu_seqlens=starts, causal=True)
    assert [each.tolist() for each in counted] == [[2, 1]]
    own.step()
    assert layers(lens) == 1
    lens += 1
    own.layer = "2"
    own.states("attention", rows + 1, lens=lens, cu_seqlens=starts, causal=True)
    assert len(counted) == 2
    monkeypatch.setattr(standin.watcher, "capturing_on_host", True)
    assert layers(lens) == 1
    counted.clear()
    own.layer = "2"
    own.states("attention", rows + 1, lens=lens, cu_seqlens=starts, causal=True)
    assert not counted


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("replays", [False, True], ids=["eager", "replays"])
@pytest.mark.parametrize("fault", standin.FAULTS)
def test_a_fault_is_named_at_its_first_step(fault: str, replays: bool, device: str) -> None:
    lines: list[str] = []
    engine = made(fault, replays=replays, device=device, lines=lines)
    while engine.step_number < FIRST + 3 and not lines:
        engine.step()  # nothing waits for the device, so a report comes a step or two later
    report = engine.watch.reports[0].record if engine.watch.reports else (engine.watch.finish() or pytest.fail("nothing was found")).record
    assert (report["layer"], report["seam"], report["name"], report["class"]) == NAMED[fault]
    assert report["step"] == FIRST and report["row"] == ROWS.get(fault, [0, 0])
    assert report["request"] == f"r{report['row'][0] + 1}"
    assert f"step {FIRST}: " in lines[0] and NAMED[fault][1] in lines[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("poison", [False, True], ids=["", "poison"])
@pytest.mark.parametrize("replays", [False, True], ids=["eager", "replays"])
def test_no_alarm_in_clean_steps(replays: bool, poison: bool, device: str) -> None:
    engine = made(replays=replays, device=device, choice=Choice(frozenset(SEAMS), poison=poison))
    for _ in range(25):
        engine.step()
    assert engine.watch.finish() is None and not engine.watch.counts


@pytest.mark.parametrize("fault", ["wrong base in one path", "stale rows"])
def test_what_is_finite_is_found_without_poison(fault: str) -> None:
    engine = made(fault, choice=Choice(frozenset(SEAMS)))
    for _ in range(FIRST):
        engine.step()
    assert engine.watch.finish().record["class"] == NAMED[fault][3]


@pytest.mark.parametrize("replays", [False, True], ids=["eager", "replays"])
def test_only_every_nth_step_is_looked_at(replays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = made("wrong base in one path", replays=replays, choice=Choice(frozenset(SEAMS), every=5))
    calls = []
    own = ops.check_states
    monkeypatch.setattr(ops, "check_states", lambda *args, **kwargs: (calls.append(engine.step_number), own(*args, **kwargs)))
    sizes = set()
    again = ops.check_attention
    monkeypatch.setattr(ops, "check_attention", lambda *args, **kwargs: (sizes.add(kwargs["step_size"]), again(*args, **kwargs)))
    for _ in range(9):
        engine.step()
    engine.watch.finish()
    assert [report.record["step"] for report in engine.watch.reports] == [5] and sizes == {5}
    if not replays:
        assert set(calls) == {5}


def test_seams_are_chosen() -> None:
    engine = made("wrong base in one path", choice=Choice(frozenset({"reduce", "metadata"})))
    for _ in range(FIRST + 2):
        engine.step()
    assert engine.watch.finish() is None


def test_a_repair_in_place_and_its_count() -> None:
    """A repair blanks the wrong states of a chunk right after the attention that computed them, so the later merges are
    right. The repaired rows are counted."""
    engine = made("an empty request's +inf", choice=Choice(frozenset({"attention", "merge"}), repair=True))
    kept: Any = None
    own = engine.merge

    def merge(layer: int, name: str, to: Any, sides: Any, seam: str = "merge") -> None:
        nonlocal kept
        kept = [x.clone() for x in sides[1]] if name == "context" else kept
        own(layer, name, to, sides, seam)

    engine.merge = merge  # type: ignore[method-assign]
    for _ in range(FIRST):
        engine.step()
    found = engine.watch.finish().record
    assert found["class"] == "not empty" and engine.watch.repaired["attention"] == engine.watch.counts["attention", "not empty"] > 0
    dead = (engine.chunk_lens[1] <= 0)[engine.owner.long()] & (engine.slots >= 0)
    out, lse = kept
    assert bool(dead.any()) and bool((lse[:, dead] == -torch.inf).all()) and not out[dead].any()
    assert {seam for seam, _ in engine.watch.counts} == {"attention"}


def test_a_merge_is_made_again_in_place() -> None:
    own = Watch(Choice(frozenset(SEAMS), repair=True), say=lambda line: None)
    rows, lses = torch.randn(2, 5, 2, 16), torch.randn(2, 2, 5)
    out, lse = ops.merge_attn_states(rows[0], lses[0], rows[1], lses[1], return_lse=True)
    broken, broken_lse = out + 1, lse.clone()
    own.step()
    own.merge(broken, broken_lse, list(rows), list(lses))
    assert torch.equal(broken, out) and torch.equal(broken_lse, lse)
    assert own.finish().record["class"] == "another value" and own.repaired["merge"] == 10


def test_words_of_the_variable() -> None:
    assert choice_of("") is choice_of("0") is choice_of("off, 1") is None
    assert choice_of("1") == Choice(frozenset(SEAMS))
    assert choice_of("attention, merge,every=100,poison") == Choice(frozenset({"attention", "merge"}), 100, True, False)
    for text, message in (("layers", 'got "layers"'), ("every=0", "every=N with N of at least 1"), ("every=x", "every=x")):
        with pytest.raises(ArgumentError, match=message):
            choice_of(text)


# -- Output for users ---------------------------------------------------------------------------------------------------


def test_a_report_in_a_file_and_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, script = tmp_path / "reports.jsonl", tmp_path / "again.py"
    engine = made("wrong base in one path", json=file)
    for _ in range(FIRST):
        engine.step()
    engine.watch.finish()
    record = json.loads(file.read_text())
    assert record["schema"] == "mlafix-watch/1" and record["counts"] == {"another lse": 16}
    assert "values" not in record["arguments"] and record["arguments"]["q"] == {"shape": [12, 4, 16], "dtype": "float32"}
    (tmp_path / "mine.py").write_text("import torch\n\n\ndef attend(q, k_cache, v_cache, **_):\n    return torch.full_like(q, 3.0), torch.zeros(q.shape[1], q.shape[0])\n")
    sys.path.insert(0, str(tmp_path))
    try:
        assert command_line.main(["watch", str(file), "--backend", "mine:attend", "--script", str(script)]) == 0
    finally:
        sys.path.remove(str(tmp_path))
    text = capsys.readouterr().out
    for words in ("step 4", "layer 1, attention (suffix, recomputed)", "expected  an lse of", 'base="2"', "https://github.com/", "its table ["):
        assert words in text, words
    ran = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "expected" in ran.stdout, ran.stderr


PAGED = """
import torch

def attend(q, k_cache, v_cache, *, block_table, seq_lens, cu_seqlens_q, scale, causal=False, **_):
    out, starts = torch.empty_like(q), cu_seqlens_q.tolist()
    for b, length in enumerate(seq_lens.tolist()):
        keys, values = (cache[block_table[b].long()].flatten(0, 1)[:length] for cache in (k_cache, v_cache))
        count = starts[b + 1] - starts[b]
        mask = torch.ones(count, length).tril(length - count) == 0
        out[starts[b] : starts[b + 1]] = torch.nn.functional.scaled_dot_product_attention(
            *(rows.transpose(0, 1)[None] for rows in (q[starts[b] : starts[b + 1]], keys, values)), attn_mask=~mask, scale=scale, enable_gqa=True)[0].transpose(0, 1)
    return out
"""


@pytest.mark.parametrize("first", [True, False])
def test_a_script_for_a_layer_of_vllm(first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of a backend's forward has lengths, pages and sizes, even if the first check finds the fault. The
    script that is written from the report fails with a wrong backend and passes with a right one."""
    file, script = tmp_path / "reports.jsonl", tmp_path / "again.py"
    own = Watch(json=file, say=lambda line: None)
    numbers = lambda *all: torch.tensor(all).int()
    metadata = types.SimpleNamespace(num_actual_tokens=3, seq_lens=numbers(7, 9), query_start_loc=numbers(0, 2, 3), block_table=numbers([4, 5], [6, 3]))
    impl = types.SimpleNamespace(num_heads=8)
    for broken in (True,) if first else (False, True):
        own.step(requests=["a", "b"])
        out = torch.ones(3, 128)
        out[2] = torch.nan if broken else 1
        given = {"self": impl, "attn_metadata": metadata, "output": out, "query": torch.ones(3, 8, 16), "key": torch.ones(3, 4, 16), "value": torch.ones(3, 4, 16)}
        engines.behind_layer(own, given, out)
    record = own.finish().record
    assert (record["request"], record["lens"], record["cu_seqlens"], record["block_table_row"]) == ("b", [7, 9], [0, 2, 3], [6, 3])
    backend = tmp_path / f"backend_of_{first}.py"
    backend.write_text(PAGED)
    monkeypatch.syspath_prepend(tmp_path)
    assert command_line.main(["watch", str(file), "--backend", f"backend_of_{first}:attend", "--script", str(script)]) == 0
    assert "q_lens=(2, 1), kv_lens=(7, 9), heads=8, kv_heads=4, dim=16" in script.read_text()
    for status, text in ((0, PAGED), (1, PAGED.replace("length - count", "length - count - 1"))):
        backend.write_text(text)
        ran = subprocess.run([sys.executable, "-B", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == status, ran.stdout + ran.stderr


def test_a_report_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "reports.jsonl"
    assert command_line.main(["watch", str(file)]) == 2
    file.write_text('\n{"schema": "other"}\n')
    assert command_line.main(["watch", str(file)]) == 2
    assert f"expected a report of schema mlafix-watch/1 in {file}, got schema other; line 2 of the file" in capsys.readouterr().err


# -- Functions ------------------------------------------------------------------------------------------------------------


def test_any_function_is_watched() -> None:
    def attend(x: torch.Tensor) -> Any:
        out = x.clone()
        out[2, 1, 3] = torch.nan
        return out, torch.zeros(2, 5)

    lines: list[str] = []
    own = Watch(say=lines.append)
    watched = watch(attend, on=own, layer="7")
    own.step()
    watched(torch.ones(5, 2, 16))
    assert own.finish().record["row"] == [2, 1] and "layer 7, attention (attend), row 2, head 1: NaN" in lines[0]
    module = types.SimpleNamespace(attend=attend)
    with watching(module, ["attend"], Watch(say=lines.append)) as found:
        module.attend(torch.ones(5, 2, 16))
    assert found.reports and module.attend is attend


def test_attention_of_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the registry of transformers, or an imitation of it if transformers is not installed."""
    try:
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as registry
    except ImportError:
        class Registry(dict):  # type: ignore[type-arg]
            def valid_keys(self) -> Any:
                return self.keys()

            register = dict.__setitem__

        registry = Registry()
        utils = types.ModuleType("transformers.modeling_utils")
        utils.ALL_ATTENTION_FUNCTIONS = registry  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "transformers", types.ModuleType("transformers"))
        monkeypatch.setitem(sys.modules, "transformers.modeling_utils", utils)

    def attention(module: Any, query: Any, key: Any, value: Any, mask: Any = None, **_: Any) -> Any:
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)
        return out * (2.5 if module.layer_idx == 1 and module.is_broken else 1.0), None

    registry.register("mine", attention)
    own = functions.register_transformers(Watch(say=lambda line: None))
    watched = registry["watched_mine"]
    x = torch.randn(1, 2, 6, 16)
    x[..., 0] = 3.0
    for is_broken in (False, True):
        for layer in (0, 1):
            watched(types.SimpleNamespace(layer_idx=layer, is_broken=is_broken), x, x, x)
    assert own.finish().record["layer"] == "1"
    assert (own.reports[0].record["class"], own.reports[0].record["step"], len(own.reports)) == ("too large", 2, 1)


def test_slots_behind_the_end_are_poisoned_and_no_others() -> None:
    cache = torch.ones(6, 4, 2, 8)
    narrow = torch.ones(6, 4, 2, 8).to(torch.float8_e4m3fn)
    table, lens = torch.tensor([[1, 2], [3, 0], [4, 5], [0, 0]]), torch.tensor([6, 4, 5, 0])
    poison_cache([cache, narrow], table, lens)
    dead = torch.zeros(6, 4, dtype=torch.bool)
    dead[2, 2:] = dead[5, 1:] = True
    for each in (cache, narrow.float()):
        assert torch.equal(each.isnan().all(-1).all(-1), dead) and not each[~dead].isnan().any()


# -- Engines ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(engines, "watches", {})
    monkeypatch.setattr(imports._finder, "waiting", {})
    yield


def module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(contents)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def merge_attn_states(output: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output_lse: Any = None) -> None:
    output.copy_(prefix_output)
    if output_lse is not None:
        output_lse.copy_(prefix_lse)


class Impl:
    """An attention backend that imitates one of vLLM."""

    num_heads = 2

    def forward(self, layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, attn_metadata: Any, output: Any) -> Any:
        output.copy_(query)
        output.view(query.shape[0], 2, -1)[layer.broken] = torch.nan
        return output


class Runner:
    def execute_model(self, scheduler_output: Any) -> str:
        return "done"


@pytest.mark.parametrize("step", [0, 1], ids=["sampled", "not sampled"])
def test_a_call_without_an_output_is_poisoned_in_no_step(step: int) -> None:
    own, out = Watch(Choice(frozenset(SEAMS), every=2, poison=True)), torch.zeros(3, 2, 8)
    own.now = step
    engines.before_attention(own, {"out": None}, None)
    engines.before_attention(own, {"out": out}, None)
    assert bool(out.isnan().all()) == (step == 0)


def test_watch_that_began_in_inference_mode_goes_on_outside() -> None:
    """A watch that began in inference mode also works outside of it. Engines run models in inference mode, but a step
    or the end of the process may be outside."""
    own = Watch(Choice(frozenset(["attention"])))
    for broken in (False, True):
        own.step(live=2)
        rows = torch.full((2, 1, 16), torch.nan if broken else 1.0)
        with torch.inference_mode():
            own.states("attention", rows)
    found = own.finish()
    assert found is not None and (found.record["step"], found.record["class"]) == (2, "NaN")


def test_vllm_is_watched_by_a_plugin(fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_merge, forward = merge_attn_states, Impl.forward
    module(monkeypatch, "vllm.v1.attention.ops.triton_merge_attn_states", merge_attn_states=own_merge)
    user = module(monkeypatch, "vllm.v1.attention.backends.flash_attn", FlashAttentionImpl=Impl, merge=own_merge)
    module(monkeypatch, "vllm.v1.worker.gpu_model_runner", GPUModelRunner=Runner)
    monkeypatch.setattr(Impl, "forward", forward)
    monkeypatch.setattr(Runner, "execute_model", Runner.execute_model)
    engines.register_vllm()
    assert not engines.watches and user.merge is own_merge
    monkeypatch.setenv("MLAFIX_WATCH", "1")
    monkeypatch.setenv("MLAFIX_WATCH_REPORT", str(tmp_path / "reports"))
    engines.register_vllm()
    engines.register_vllm()
    own = engines.watches["vllm"]
    scheduled = types.SimpleNamespace(num_scheduled_tokens={"a": 3, "b": 2})
    assert Runner().execute_model(scheduled) == "done"
    metadata = types.SimpleNamespace(num_actual_tokens=5, seq_lens=torch.tensor([3, 0]).int(), query_start_loc=torch.tensor([0, 3, 5]).int())
    x = torch.zeros(6, 32)
    x[:3] = 1
    for name, broken in (("model.layers.0", 5), ("model.layers.1", 1)):
        Impl().forward(types.SimpleNamespace(layer_name=name, broken=broken), x, x, x, None, metadata, torch.empty_like(x))
    found = own.finish().record
    assert (found["layer"], found["name"], found["class"], found["row"]) == ("model.layers.1", "Impl.forward", "NaN", [1, 0])
    Runner().execute_model(scheduled)
    rows, lse = torch.randn(2, 5, 2, 16), torch.zeros(2, 2, 5)
    assert user.merge is sys.modules["vllm.v1.attention.ops.triton_merge_attn_states"].merge_attn_states is not own_merge
    user.merge(torch.empty(5, 2, 16), rows[0], lse[0], rows[1], lse[1], torch.empty(2, 5))
    found = own.finish().record
    assert (found["seam"], found["class"], found["step"]) == ("merge", "another lse", 2) and (tmp_path / "reports").read_text().count("\n") == 2


def test_vllms_attention_for_cpus_is_watched(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = Impl.forward
    module(monkeypatch, "vllm.v1.attention.backends.cpu_attn", CPUAttentionBackendImpl=Impl)
    module(monkeypatch, "vllm.v1.worker.gpu_model_runner", GPUModelRunner=Runner)
    monkeypatch.setattr(Impl, "forward", forward)
    monkeypatch.setattr(Runner, "execute_model", Runner.execute_model)
    monkeypatch.setenv("MLAFIX_WATCH", "attention")
    engines.register_vllm()
    x, numbers = torch.ones(3, 32), lambda *all: torch.tensor(all).int()
    metadata = types.SimpleNamespace(num_actual_tokens=2, seq_lens=numbers(7, 9), query_start_loc=numbers(0, 1, 2), block_table=numbers([4, 5], [6, 3]))
    for broken in (2, 1):
        Runner().execute_model(types.SimpleNamespace(num_scheduled_tokens={"a": 1, "b": 1}))
        Impl().forward(types.SimpleNamespace(layer_name="model.layers.0", broken=broken), x, x, x, None, metadata, torch.empty_like(x))
    found = engines.watches["vllm"].finish().record
    assert (found["step"], found["request"], found["class"], found["got"]) == (2, "b", "NaN", "a largest magnitude of nan")
    assert (found["lens"], found["cu_seqlens"], found["block_table_row"]) == ([7, 9], [0, 1, 2], [6, 3])


class SecondRunner:
    """Imitates the second of vLLM's two model runners (vllm.v1.worker.gpu). Its batch has the requests in another order
    than the scheduler, and all layers share its block tables."""

    speculator = None
    kv_cache_config = types.SimpleNamespace(num_blocks=8)
    block_tables = types.SimpleNamespace(kernel_block_sizes=[4], blocks_per_kv_block=[1])

    def execute_model(self, scheduler_output: Any, dummy_run: bool = False) -> Any:
        return dummy_run or self.prepare_attn(scheduler_output.batch)

    def prepare_attn(self, input_batch: Any) -> Any:
        return (torch.tensor([[1, 2], [3, 0]]).int(),), torch.tensor([[9, 13, 14, -1]])


def two_requests(device_lens: tuple[int, ...]) -> Any:
    starts = torch.tensor([0, 1, 3]).int()
    batch = types.SimpleNamespace(req_ids=["b", "a"], num_reqs=2, num_tokens=3, seq_lens=torch.tensor(device_lens).int(), query_start_loc=starts,
                                  seq_lens_cpu_upper_bound=torch.tensor([6, 3]).int(), query_start_loc_np=starts.numpy())  # fmt: skip
    return types.SimpleNamespace(num_scheduled_tokens={"a": 2, "b": 1}, batch=batch)


def test_the_second_runner_of_vllm_gives_its_batch(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dummy runs do not count as steps. Reports name the requests in the batch's order, and wrong lengths on the device
    are found. If a check sees only a part of the batch, its rows belong to the requests of that part."""
    layer = module(monkeypatch, "vllm.model_executor.layers.attention.mla_attention")

    class MLAAttention:
        layer_name, num_heads = "model.layers.3", 2

        def forward_impl(self, q: Any, k_c_normed: Any, k_pe: Any, kv_cache: Any, attn_metadata: Any, output: Any) -> Any:
            layer.MLACommonBaseImpl().forward_mha(q[1:], attn_metadata)
            return output

    class MLACommonBaseImpl:
        def forward_mha(self, q: Any, attn_metadata: Any) -> None:
            sys.modules["vllm.vllm_flash_attn.flash_attn_interface"].flash_attn_varlen_func(q, q, q, torch.tensor([0, 2]).int())

    def flash_attn_varlen_func(q: Any, k: Any, v: Any, cu_seqlens_q: Any, seqused_k: Any = None, block_table: Any = None, causal: bool = False) -> Any:
        return q

    vars(layer).update(MLAAttention=MLAAttention, MLACommonBaseImpl=MLACommonBaseImpl)
    flash = module(monkeypatch, "vllm.vllm_flash_attn.flash_attn_interface", flash_attn_varlen_func=flash_attn_varlen_func)
    runner = type("GPUModelRunner", (SecondRunner,), {name: vars(SecondRunner)[name] for name in ("execute_model", "prepare_attn")})
    module(monkeypatch, "vllm.v1.worker.gpu.model_runner", GPUModelRunner=runner)
    monkeypatch.setenv("MLAFIX_WATCH", "1")
    engines.register_vllm()
    own = engines.watches["vllm"]
    broken = torch.ones(3, 2, 16)
    broken[1, 0, 5] = torch.nan
    flash.flash_attn_varlen_func(broken, broken, broken, torch.tensor([0, 1, 3]).int(), seqused_k=torch.tensor([6, 3]).int())
    runner().execute_model(two_requests((6, 3)), dummy_run=True)
    assert own.finish() is None and own.now == 0  # the rows of a dummy run belong to no step
    runner().execute_model(two_requests((6, 2)))
    found = own.finish().record
    assert (found["class"], found["request"], found["row"], found["step"]) == ("another length", "a", [1, 0], 1)
    runner().execute_model(two_requests((6, 3)))
    metadata = types.SimpleNamespace(num_decode_tokens=1, num_actual_tokens=3, num_prefills=1, decode=None, query_start_loc=None)
    flash.flash_attn_varlen_func(broken[2:], broken[2:], broken[2:], torch.tensor([0, 1]).int(), seqused_k=torch.tensor([6]).int())
    own.layer = ""
    layer.MLAAttention().forward_impl(broken, None, None, None, metadata, torch.zeros(3, 32))
    # forward_impl() has no lengths, so this seam checks nothing. The later seams of vLLM check these rows.
    assert own.finish() is None and own.first_row == 0
    runner().execute_model(two_requests((6, 3)))
    own.first_row = 1
    own.states("attention", broken[1:], name="part")
    own.first_row = 0
    found = own.finish().record
    assert (found["request"], found["token"], found["row"], found["lens"]) == ("a", 0, [0, 0], [6, 3])
    assert found["before"] == "metadata (batch)" and found["block_table_row"] == [3, 0]


def test_rows_whose_context_a_merge_dropped_are_found(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge that drops the context of rows is found. vLLM's merge copies the suffix of the tokens past a threshold,
    which is the number of tokens that have a context. If these tokens are not the first ones of the batch, the merge
    drops their context."""
    def merge_attn_states(output: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output_lse: Any = None,
                          prefill_tokens_with_context: int | None = None) -> None:  # fmt: skip
        output.copy_(suffix_output)

    merges = module(monkeypatch, "vllm._custom_ops", merge_attn_states=merge_attn_states)
    monkeypatch.setenv("MLAFIX_WATCH", "merge")
    engines.register_vllm()
    own = engines.watches["vllm"]
    rows, lse = torch.randn(2, 5, 2, 16), torch.zeros(2, 2, 5)
    for without in (5, 3):
        own.step()
        prefix, prefix_lse = rows[0].clone(), lse[0].clone()
        prefix[:without], prefix_lse[:, :without] = 0, -torch.inf
        merges.merge_attn_states(torch.empty(5, 2, 16), prefix, prefix_lse, rows[1], lse[1], None, 2)
        report = own.finish()
        assert (report is None) == (without == 5)
    assert (own.reports[0].record["class"], own.reports[0].record["row"]) == ("another value", [3, 0])
    assert own.reports[0].record["got"].startswith("a largest magnitude")  # the call has no lse


def test_keys_of_a_latent_cache_are_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """In decodes of MLA, a key is one row of the latent cache. A call passes two slices of the row as k and v, so the
    score of a key is the sum of q times k and q_v times v."""
    own = Watch(say=lambda line: None, sample=1)
    own.step()
    cache, q = torch.randn(6, 4, 24), torch.randn(2, 3, 24)
    lens, starts, table = torch.tensor([5, 7]).int(), torch.tensor([0, 1, 2]).int(), torch.tensor([[1, 2], [3, 4]]).int()
    rows = [cache[row.long()].reshape(-1, 24)[:length] for row, length in zip(table, lens)]
    out = torch.stack([torch.softmax(each @ keys.T * 0.2, -1) @ keys[:, :16] for each, keys in zip(q, rows)])
    given = {"q": q[..., 16:], "k": cache[..., 16:].unsqueeze(-2), "v": cache[..., :16].unsqueeze(-2), "q_v": q[..., :16], "cu_seqlens_q": starts,
             "seqused_k": lens, "block_table": table, "softmax_scale": 0.2, "causal": True}  # fmt: skip
    engines.behind_attention(own, given, out)
    assert own.finish() is None
    out[1, 2] *= 1.5
    engines.behind_attention(own, given, out)
    assert own.finish().record["row"] == [1, 2]
    slots = torch.randn(6, 1, 24)  # pages have one slot, so the strides of dims of size 1 carry no information
    row = engines._latent_rows(slots[..., :16].view(-1, 1, 1, 16), slots[..., 16:].view(-1, 1, 1, 8))
    assert row.flatten().tolist() == slots.flatten().tolist()


def test_sglang_is_watched_by_hooks(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    registered: dict[tuple[str, str], Any] = {}

    class HookRegistry:
        @staticmethod
        def register(target: str, function: Any, kind: str) -> None:
            registered[target, kind] = function

    kinds = types.SimpleNamespace(AROUND="around", REPLACE="replace")
    module(monkeypatch, "sglang.srt.plugins.hook_registry", HookRegistry=HookRegistry, HookType=kinds)

    def merge_state(prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output: Any = None, output_lse: Any = None) -> Any:
        return prefix_output, prefix_lse

    def merge_state_v2(v_a: Any, s_a: Any, v_b: Any, s_b: Any, v_merged: Any = None, s_merged: Any = None) -> Any:
        w_a, w_b = (torch.exp(each - torch.logaddexp(s_a, s_b))[..., None] for each in (s_a, s_b))
        v_a.copy_(w_a * v_a + w_b * v_b)  # writes to v_a, since the call below passes it as v_merged, too
        return v_a, torch.logaddexp(s_a, s_b)

    place = "sglang.srt.layers.attention.merge_state"
    module(monkeypatch, place, merge_state=merge_state)
    module(monkeypatch, "sgl_kernel", merge_state_v2=merge_state_v2)
    monkeypatch.setenv("MLAFIX_WATCH", "merge")
    engines.register_sglang()
    own = engines.watches["sglang"]
    own.step()
    # there are as many rows as heads, so the watch must know from SGLang's layout which dim of an lse is which
    rows, lse = torch.randn(2, 2, 2, 16), torch.randn(2, 2, 2)
    arguments = rows[0].clone(), lse[0], rows[1], lse[1]
    registered["sgl_kernel.merge_state_v2", "around"](merge_state_v2, *arguments, v_merged=arguments[0])
    assert own.finish() is None
    registered[f"{place}.merge_state", "around"](merge_state, *arguments)
    found = own.finish().record
    assert (found["class"], found["name"], found["before"]) == ("another lse", "merge_state", "merge (suffix of merge_state)")


def mode(name: str) -> Any:
    return types.SimpleNamespace(is_idle=lambda: name == "idle", is_decode=lambda: name == "decode")


def test_sglang_gives_requests_pages_and_contexts(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch knows the requests of SGLang's step, and to which of them a row belongs. It checks pages before they
    are read, and the rows afterwards. A request without keys in a chunk must have zeros and an lse of -inf."""
    own = Watch(say=lambda line: None, sample=1)
    batch = types.SimpleNamespace(rids=["a", "b"], forward_mode=mode("extend"), extend_seq_lens_cpu=[3, 2], seq_lens_cpu=torch.tensor([3, 6]), input_ids=torch.zeros(5))
    layer = types.SimpleNamespace(layer_id=7, tp_q_head_num=2)
    engines.before_step(own, {"forward_batch": batch}, None)
    engines.before_sglang_layer(own, {"layer": layer}, None)
    starts, keys = torch.tensor([0, 3, 5]).int(), torch.tensor([0, 0, 4]).int()
    out, lse = torch.randn(5, 2, 16), torch.randn(2, 5)
    given = {"q": out, "k": out, "v": out, "cu_seqlens_q": starts, "cu_seqlens_k": keys, "causal": False}
    out[:3], lse[:, :3] = 0, -torch.inf
    engines.behind_sglang_varlen(own, given, (out, lse))
    assert own.finish() is None
    lse[1, 2] = 0.5
    engines.behind_sglang_varlen(own, given, (out, lse))
    found = own.finish().record
    assert (found["class"], found["layer"], found["request"], found["token"]) == ("not empty", "7", "a", 2)

    batch = types.SimpleNamespace(rids=["a", "b"], forward_mode=mode("decode"), seq_lens_cpu=torch.tensor([3, 2]), input_ids=torch.zeros(2))
    engines.before_step(own, {"forward_batch": batch}, None)
    engines.before_sglang_layer(own, {"layer": layer}, None)
    k, v, q = torch.randn(8, 1, 1, 16), torch.randn(8, 1, 1, 16), torch.randn(2, 2, 16)
    table, lens = torch.tensor([[1, 2, 3], [4, 5, 0]]).int(), torch.tensor([3, 2]).int()
    rows = torch.stack([torch.softmax(q[at] @ k[table[at, :length].long(), 0, 0].T * 0.25, -1) @ v[table[at, :length].long(), 0, 0] for at, length in enumerate((3, 2))])
    given = {"q": q, "k_cache": k, "v_cache": v, "page_table": table, "cache_seqlens": lens, "cu_seqlens_q": torch.tensor([0, 1, 2]).int(), "softmax_scale": 0.25, "causal": True}
    engines.before_sglang_pages(own, given, None)
    engines.behind_sglang_pages(own, given, rows)
    engines.behind_sglang_layer(own, {"self": own, "layer": layer, "forward_batch": batch}, rows.view(2, 32))
    assert own.finish() is None
    rows[1, 0] *= 1.5
    engines.behind_sglang_pages(own, given, rows)
    found = own.finish().record
    assert (found["class"], found["name"], found["request"]) == ("another value", "flash_attn_with_kvcache, recomputed", "b")
    engines.before_step(own, {"forward_batch": types.SimpleNamespace(rids=[], forward_mode=mode("idle"))}, None)
    assert own.now == 2


def test_a_check_that_raises_is_logged_once_and_the_engine_goes_on(fresh: None, caplog: pytest.LogCaptureFixture) -> None:
    def own(x: int) -> int:
        return x + 1

    seam = engines.Seam("vllm.somewhere:own", "attention", lambda watch, given, result: given["nothing"])
    call = engines.watched(own, seam, Watch())
    with caplog.at_level("WARNING"):
        assert [call(1), call(2)] == [2, 3]
    assert [record.getMessage() for record in caplog.records] == ["mlafix: vllm.somewhere:own is not watched any more: KeyError: 'nothing'"]
