"""Tests the plugins for vLLM and SGLang without these engines, on modules with the engines' names, functions and
conventions.

If MLAFIX_ENGINE_WHEELS names a folder with wheels of the engines (`scripts/engine-drift --keep`), the engines' own registries are
loaded from there and tested as well.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import contract
from mlafix import ArgumentError, UnitError, _env
from mlafix import __main__ as command_line
from mlafix.compat import vllm as drop_ins
from mlafix.engines import imports, replace, report, seams, signatures, source, switch, warm
from mlafix.engines import flashinfer as solutions
from mlafix.engines import sglang as sglang_plugin
from mlafix.engines import vllm as vllm_plugin
from numerics import F32
from states import make_states

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
OPS = "vllm.v1.attention.ops"
TRITON = f"merge_attn_states at {OPS}.triton_merge_attn_states:merge_attn_states"
SCHEMA = ("merge_attn_states(Tensor! output, Tensor!? output_lse, Tensor prefix_output, Tensor prefix_lse, Tensor suffix_output, "
          "Tensor suffix_lse, int!? prefill_tokens_with_context, Tensor? output_scale) -> ()")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Resets the plugins, and unsets the environment variables of the plugins."""
    for plugin in (vllm_plugin, sglang_plugin):
        monkeypatch.setattr(plugin, "state", None)
    monkeypatch.setattr(vllm_plugin, "_libraries", [])
    monkeypatch.setattr(imports._finder, "waiting", {})
    monkeypatch.setattr(replace, "installed", lambda name: "")
    for plugin in (vllm_plugin, sglang_plugin):
        monkeypatch.setattr(plugin, "installed", lambda name: "")
    for name in ("MLAFIX_VLLM", "MLAFIX_SGLANG", "MLAFIX_STRICT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(switch.Replaced, "report_at_exit", lambda self: None)
    monkeypatch.setattr(switch.Replaced, "report_each", lambda self, seconds: None)
    yield
    _env.forbid_compiling(False)


def module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> types.ModuleType:
    """Makes a module with a given name and contents for the current test."""
    made = types.ModuleType(name)
    vars(made).update(contents)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def register(monkeypatch: pytest.MonkeyPatch, words: str = "1") -> None:
    monkeypatch.setenv("MLAFIX_VLLM", words)
    vllm_plugin.register()


def fake_merge() -> Any:
    """Returns a function with vLLM's signature that only copies the suffix. The function is local, because a plugin
    would also find and replace a global one of this module."""

    def merge_attn_states(output: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output_lse: Any = None,
                          prefill_tokens_with_context: Any = None, output_scale: Any = None) -> None:
        output.copy_(suffix_output)

    return merge_attn_states


def arguments(rng: np.random.Generator, dim: int = 64) -> tuple[dict[str, Any], Callable[[], None]]:
    """Returns the arguments of a merge, and a function that checks its outputs."""
    states = make_states(rng, 2, 5, 2, dim, F32, faults=False)
    given = {"output": torch.full((5, 2, dim), torch.nan), "output_lse": torch.full((2, 5), torch.nan)}
    for name, at in (("prefix", 0), ("suffix", 1)):
        given |= {f"{name}_output": torch.from_numpy(states.v[at].copy()), f"{name}_lse": torch.from_numpy(states.s[at].T.copy())}
    want, want_lse = contract.merge(states.v, states.s)

    def check() -> None:
        want.check(given["output"].numpy(), "output")
        want_lse.check(given["output_lse"].numpy().T, "output_lse")

    return given, check


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Imitates vLLM: the module with its Triton merge, and a backend that imported it. Returns the backend."""
    own = fake_merge()
    module(monkeypatch, f"{OPS}.triton_merge_attn_states", merge_attn_states=own)
    return module(monkeypatch, "vllm.v1.attention.backends.flash_attn", merge=own)


def test_nothing_is_replaced_unless_asked_for(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    own = engine.merge
    for text in ("", "0", "off", "false"):
        register(monkeypatch, text)
        assert vllm_plugin.state is None and engine.merge is own


def test_a_function_is_replaced_wherever_it_was_imported(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    own = engine.merge
    register(monkeypatch)
    vllm_plugin.register()  # vLLM registers twice in some processes
    assert engine.merge is sys.modules[f"{OPS}.triton_merge_attn_states"].merge_attn_states is not own
    given, check = arguments(rng)
    engine.merge(**given)
    check()
    given, check = arguments(rng)
    engine.merge(*(given[name] for name in ("output", "prefix_output", "prefix_lse", "suffix_output", "suffix_lse", "output_lse")))
    check()
    assert vllm_plugin.state is not None and vllm_plugin.state.tallies["merge_attn_states"].calls == 2
    said = capsys.readouterr().err
    assert said.count("replaced in vllm: merge_attn_states") == 1 and "as soon as it is imported: accumulate_mla_context_chunk, " in said


def test_names_choose(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    own = engine.merge
    register(monkeypatch, "pack_seq_triton, no_such")
    assert engine.merge is own and vllm_plugin.state is not None
    assert set(vllm_plugin.state.left) == {"no_such"} and vllm_plugin.state.wanted == {"pack_seq_triton"} and "there are accumulate_mla" in vllm_plugin.state.left["no_such"]


def fake_mask() -> Any:
    def mask_dcp_empty_shards_(lse: Any, seq_lens: Any, query_start_loc: Any) -> None:
        lse.fill_(7.0)

    return mask_dcp_empty_shards_


@pytest.mark.parametrize("word", ["mask_dcp_empty_shards_", "mask_dcp_empty_shards_, compare"])
def test_a_function_of_two_modules_is_replaced_once_if_the_version_is_unknown(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the engine's version is unknown, both modules may have the function, as one may import it from the other. The
    importing module must not get a stand-in for the stand-in."""
    own = fake_mask()
    module(monkeypatch, f"{OPS}.dcp", mask_dcp_empty_shards_=own)
    later = module(monkeypatch, f"{OPS}.common", mask_dcp_empty_shards_=own)
    register(monkeypatch, word)
    assert vllm_plugin.state is not None and vllm_plugin.state.places == {"mask_dcp_empty_shards_": [f"{OPS}.dcp:mask_dcp_empty_shards_"]}
    why = "replaced already, since another module has the same function"
    assert vllm_plugin.state.left == {f"mask_dcp_empty_shards_ at {OPS}.common:mask_dcp_empty_shards_": why}
    assert later.mask_dcp_empty_shards_.__wrapped__ is own


def test_functions_of_two_modules_are_both_replaced_if_the_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {name: module(monkeypatch, f"{OPS}.{name}", mask_dcp_empty_shards_=fake_mask()) for name in ("dcp", "common")}
    own = {name: one.mask_dcp_empty_shards_ for name, one in modules.items()}
    register(monkeypatch, "mask_dcp_empty_shards_")
    places = [f"{OPS}.{name}:mask_dcp_empty_shards_" for name in modules]
    assert vllm_plugin.state is not None and vllm_plugin.state.places == {"mask_dcp_empty_shards_": places}
    assert not vllm_plugin.state.left
    assert all(one.mask_dcp_empty_shards_.__wrapped__ is own[name] for name, one in modules.items())
    text = inspect.getsource(drop_ins.mask_dcp_empty_shards_).partition(":\n")[0] + ": ...\n"
    files = {f"vllm/v1/attention/ops/{name}.py": text for name in modules}
    said = [row for row in report.rows("vllm", "", files.get) if row.seam.function == "mask_dcp_empty_shards_"]
    assert [row.seam.place for row in said if not row.reason] == places


def with_unknown(output: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, sinks: Any = None) -> None: ...


def with_default(output: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output_lse: Any = 3) -> None: ...


def in_other_order(output: Any, prefix_lse: Any, prefix_output: Any, suffix_output: Any, suffix_lse: Any) -> None: ...


def with_less(output: Any, prefix_output: Any) -> None: ...


def with_any(output: Any, **names: Any) -> None: ...


@pytest.mark.parametrize("own, reason", [
    (with_unknown, "parameters that mlafix does not know: sinks"), (with_default, "parameter output_lse: default 3 there, None here"),
    (in_other_order, "parameters in another order: output, prefix_lse"), (with_less, "parameters that are missing there: prefix_lse"),
    (with_any, "parameters that mlafix does not know: names")])  # fmt: skip
def test_a_function_of_another_signature_stays(own: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = module(monkeypatch, f"{OPS}.triton_merge_attn_states", merge_attn_states=own)
    register(monkeypatch, "merge_attn_states")
    assert place.merge_attn_states is own
    assert vllm_plugin.state is not None and reason in vllm_plugin.state.left[TRITON]


def test_what_mlafix_refuses_the_engine_does_and_it_is_said_once(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator,
                                                                caplog: pytest.LogCaptureFixture) -> None:
    def without_code(*args: Any, **kwargs: Any) -> None:
        raise UnitError("no code for D=48")

    without_code.__signature__ = inspect.signature(drop_ins.merge_attn_states)  # type: ignore[attr-defined]
    monkeypatch.setattr(drop_ins, "merge_attn_states", without_code)
    register(monkeypatch)
    given, _ = arguments(rng)
    for _ in range(3):
        given["output"].fill_(torch.nan)
        engine.merge(**given)
        assert torch.equal(given["output"].nan_to_num(), given["suffix_output"].nan_to_num())
    assert [record.getMessage() for record in caplog.records].count(
        "mlafix: vllm.merge_attn_states: the engine's own is called: UnitError: no code for D=48") == 1
    assert vllm_plugin.state is not None and vllm_plugin.state.tallies["merge_attn_states"].fallbacks == 3


def test_errors_of_the_device_are_not_hidden() -> None:
    def broken() -> None:
        raise RuntimeError("a launch failed")

    call = switch.stand_in(lambda: None, broken, switch.Tally("f", vllm_plugin.LOG.logger))
    with pytest.raises(RuntimeError, match="a launch failed"):
        call()


def test_compare_runs_both_and_keeps_our_result(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    register(monkeypatch, "compare")
    given, check = arguments(rng)
    before = given["suffix_output"].clone()
    engine.merge(**given)
    check()
    state = vllm_plugin.state
    assert state is not None
    tally = state.tallies["merge_attn_states"]
    want = switch.difference(before, given["output"])
    # the fake merge leaves the lse NaN, which counts as an infinite difference
    assert tally.largest == max(want, float("inf")) and len(tally.times) == 1
    state.report()
    assert re.search(r"vllm.merge_attn_states: 1 calls, 0 by the engine's own; compared 1: largest difference inf, medians [\d.]+ us there",
                     capsys.readouterr().err)


def test_words_of_a_choice_may_have_any_case() -> None:
    assert switch.choice_of("OFF") is None
    assert switch.choice_of("True") == switch.choice_of("1")
    assert switch.choice_of("Pack, Compare") == switch.choice_of("pack,compare")


def test_counts_are_said_at_exit() -> None:
    program = """
from mlafix.engines import switch
replaced = switch.Replaced("vllm", switch.Log("vllm.mlafix"))
switch.stand_in(len, len, replaced.tally("pack"))([])
replaced.report_at_exit()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "mlafix: vllm.pack: 1 calls, 0 by the engine's own\n"


def test_sglang_whose_processes_are_killed_says_counts_before() -> None:
    """The numbers of calls are reported at intervals while the process runs, so a process that is killed has reported
    its earlier calls. A report names only the functions that were called since the last report."""
    program = """
import os, signal, threading
from mlafix.engines import switch
said = threading.Semaphore(0)
log = switch.Log("sglang.mlafix")
log.say = lambda text: (print(text, flush=True), said.release())
replaced = switch.Replaced("sglang", log)
call = switch.stand_in(len, len, replaced.tally("merge_state"))
call([])
replaced.report_each(0.01)
said.acquire()
call([])
said.acquire()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9 and [line.split(",")[0] for line in done.stdout.splitlines()] == ["sglang.merge_state: 1 calls", "sglang.merge_state: 2 calls"]


def test_difference() -> None:
    nan = float("nan")
    assert switch.difference(torch.tensor([1.0, nan, -np.inf]), torch.tensor([1.5, nan, -np.inf])) == 0.5
    assert switch.difference(torch.tensor([1.0]), torch.tensor([nan])) == np.inf
    assert switch.difference(torch.zeros(2), torch.zeros(3)) == np.inf and switch.difference(torch.zeros(0), torch.zeros(0)) == 0


def test_over_ranks_only_by_name_and_nothing_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def cp_lse_ag_out_rs(cp_attn_out: Any, cp_attn_lse: Any, cp_group: Any, ctx: Any = None, return_lse: bool = False, is_lse_base_on_e: bool = True,
                         seq_lens: Any = None, query_start_loc: Any = None) -> None: ...

    place = module(monkeypatch, f"{OPS}.dcp", cp_lse_ag_out_rs=cp_lse_ag_out_rs)
    register(monkeypatch)
    assert place.cp_lse_ag_out_rs is cp_lse_ag_out_rs
    monkeypatch.setattr(vllm_plugin, "state", None)
    register(monkeypatch, "cp_lse_ag_out_rs")
    with pytest.raises(ArgumentError):
        place.cp_lse_ag_out_rs(1, 2, types.SimpleNamespace(world_size=2))


def test_the_plugin_never_raises(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Hostile(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("this module is hostile")

    for name in (f"{OPS}.triton_merge_attn_states", vllm_plugin.LOADER):
        monkeypatch.setitem(sys.modules, name, Hostile("hostile"))
    register(monkeypatch)
    assert vllm_plugin.state is not None and "RuntimeError: this module is hostile" in vllm_plugin.state.left[TRITON]
    monkeypatch.setattr(vllm_plugin, "state", None)

    def fails(*args: Any) -> None:
        raise RuntimeError("all is lost")

    monkeypatch.setattr(vllm_plugin, "replace_all", fails)
    vllm_plugin.register()
    assert "the plugin failed; vLLM goes on" in caplog.text


def test_what_is_imported_later_is_replaced_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                    caplog: pytest.LogCaptureFixture) -> None:
    """The plugin itself imports no module of the engine. The function of a module that is imported later is replaced as
    soon as the module is imported. Modules that then import this function get the replacement. A module whose import
    fails still fails in the same way."""
    for folder in ("vllm", "vllm/v1", "vllm/v1/attention", "vllm/v1/attention/ops"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    text = "def unpack_seq_triton(packed_tensor, lengths, block_t=64, block_d=64): ..."
    (tmp_path / "vllm/v1/attention/ops/common.py").write_text(text)
    (tmp_path / "vllm/v1/attention/ops/dcp.py").write_text("import no_such_module_at_all")
    (tmp_path / "vllm/backend.py").write_text("from vllm.v1.attention.ops.common import unpack_seq_triton")
    monkeypatch.syspath_prepend(str(tmp_path))
    register(monkeypatch, "unpack_seq_triton,correct_attn_out")
    assert not [name for name in sys.modules if name.partition(".")[0] == "vllm"]

    def fails() -> None:
        raise RuntimeError("this breaks no import")

    imports.when_imported(f"{OPS}.common", fails)
    try:
        # find_spec does not import the module, and does not prevent a later import from being handled
        assert importlib.util.find_spec(f"{OPS}.common") is not None
        backend = importlib.import_module("vllm.backend")
        assert backend.unpack_seq_triton.__wrapped__.__code__.co_filename.endswith("common.py")
        assert f"mlafix: replaced vllm.unpack_seq_triton at {OPS}.common:unpack_seq_triton" in capsys.readouterr().err
        with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
            importlib.import_module(f"{OPS}.dcp")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
            del sys.modules[name]
    assert "this breaks no import" in caplog.text


@pytest.fixture
def operator() -> Iterator[Any]:
    """Registers an imitation of vLLM's operator in torch's dispatcher for the CPU. The imitation only copies the
    suffix."""
    library = torch.library.Library("_C", "FRAGMENT")
    library.define(SCHEMA)

    def own(output: Any, output_lse: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, tokens: Any, scale: Any) -> None:
        output.copy_(suffix_output)

    library.impl("merge_attn_states", own, "CPU")
    yield torch.ops._C.merge_attn_states
    for made in vllm_plugin._libraries:
        made._destroy()
    library._destroy()


ORDER = ("output", "output_lse", "prefix_output", "prefix_lse", "suffix_output", "suffix_lse")


@pytest.mark.filterwarnings("ignore:Warning only once for all operators:UserWarning")
def test_the_operator_is_overridden_and_its_own_kernel_stays_callable(operator: Any, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    replaced = switch.Replaced("vllm", vllm_plugin.LOG)
    (seam, *_) = seams.VLLM
    make = replace.maker(seam, switch.Choice(frozenset(), False, False), replaced)
    assert vllm_plugin.replace_operator(seam, make, "CPU") == ""
    given, check = arguments(rng)
    operator(*(given[name] for name in ORDER), None, None)
    check()
    operator(*(given[name] for name in ORDER), 0, None)
    assert torch.equal(given["output"].nan_to_num(), given["suffix_output"].nan_to_num())
    given["output"].fill_(torch.nan)
    # the threshold exceeds the number of tokens, so mlafix refuses the call
    operator(*(given[name] for name in ORDER), 99, None)
    assert torch.equal(given["output"].nan_to_num(), given["suffix_output"].nan_to_num())
    tally = replaced.tallies["merge_attn_states"]
    assert (tally.calls, tally.fallbacks) == (3, 1)


def test_an_operator_that_is_not_there_or_has_more_arguments_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    (seam, *_) = seams.VLLM
    assert vllm_plugin.replace_operator(seam, lambda own, mine: mine) == "torch has no operator _C::merge_attn_states here"
    library = torch.library.Library("_C", "FRAGMENT")
    library.define(SCHEMA.replace("Tensor? output_scale", "Tensor? output_scale, Tensor? sinks"))
    try:
        assert vllm_plugin.replace_operator(seam, lambda own, mine: mine) == "parameters that mlafix does not know: sinks"
    finally:
        library._destroy()


class Kernel:
    """Imitates a Triton kernel of vLLM, which is launched as kernel[grid](…). It only copies the suffix."""

    def __init__(self) -> None:
        self.arg_names, self.grids = seams.MERGE_KERNEL, list[Any]()

    def __getitem__(self, grid: Any) -> Any:
        self.grids.append(tuple(grid))
        return lambda **given: given["output"].copy_(given["suffix_output"])


def launch(kernel: Any, given: dict[str, Any], **more: Any) -> None:
    """Launches the kernel as vLLM's function does. The last two constants have defaults and are not passed."""
    named = {**dict.fromkeys(seams.MERGE_KERNEL, 0), **given, "output_scale": None, "prefill_tokens_with_context": 5, **more}
    kernel[(5, 2)](*(named[name] for name in seams.MERGE_KERNEL[:-2]))


def dispatcher(monkeypatch: pytest.MonkeyPatch, real: bool) -> None:
    """Installs vLLM's registry of kernels if `real`, else an imitation."""
    if real:
        text = release("vllm")("vllm/triton_utils/dispatcher.py")
        module(monkeypatch, "vllm.logger", init_logger=lambda name: vllm_plugin.LOG.logger)
        made = module(monkeypatch, "vllm.triton_utils.dispatcher")
        exec(compile(text, "dispatcher.py", "exec"), vars(made))
        return

    class Override:
        def __init__(self, function: Any) -> None:
            self.function = function

        def __getitem__(self, grid: Any) -> Any:
            return self.function

    def register_kernels(overrides: dict[str, Any]) -> None:
        for name, function in overrides.items():
            place, _, attribute = name.rpartition(".")
            switch.rebind(getattr(sys.modules[place], attribute), Override(function))

    module(monkeypatch, "vllm.triton_utils.dispatcher", register_kernels=register_kernels)


# vLLM's register_kernels touches torch.distributed.reduce_op, which is deprecated.
@pytest.mark.filterwarnings("ignore:`torch.distributed.reduce_op` is deprecated:FutureWarning")
@pytest.mark.parametrize("real", [False, True], ids=["like vLLM's", "vLLM's"])
def test_a_kernel_is_replaced_by_the_registry(real: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    own = Kernel()
    dispatcher(monkeypatch, real)
    place = module(monkeypatch, f"{OPS}.triton_merge_attn_states", merge_attn_states_kernel=own, merge_attn_states=None)
    register(monkeypatch, "merge_attn_states")
    assert vllm_plugin.state is not None and vllm_plugin.state.places == {"merge_attn_states": [f"{OPS}.triton_merge_attn_states:merge_attn_states_kernel"]}, \
        vllm_plugin.state.left
    assert place.merge_attn_states is None
    given, check = arguments(rng)
    launch(place.merge_attn_states_kernel, given)
    check()
    given["output"].fill_(torch.nan)
    launch(place.merge_attn_states_kernel, given, prefill_tokens_with_context=99)  # mlafix refuses this threshold
    assert torch.equal(given["output"].nan_to_num(), given["suffix_output"].nan_to_num()) and own.grids == [(5, 2)]


def test_a_kernel_with_another_argument_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Kernel()
    own.arg_names = (*seams.MERGE_KERNEL, "SINKS")
    dispatcher(monkeypatch, False)
    place = module(monkeypatch, f"{OPS}.triton_merge_attn_states", merge_attn_states_kernel=own)
    register(monkeypatch, "merge_attn_states")
    assert place.merge_attn_states_kernel is own
    assert vllm_plugin.state is not None and "arguments that mlafix does not know: SINKS" in vllm_plugin.state.left[f"{TRITON}_kernel"]


# -- When a model is loaded ------------------------------------------------------------------------------------------------


def config(heads: int = 2, dim: int = 64) -> Any:
    text = types.SimpleNamespace(v_head_dim=dim, qk_nope_head_dim=64, qk_rope_head_dim=32)
    model = types.SimpleNamespace(get_head_size=lambda: 576, use_mla=True, hf_text_config=text, dtype=torch.bfloat16,
                                  get_num_attention_heads=lambda parallel: heads)
    return types.SimpleNamespace(model_config=model, parallel_config=None)


def model_loader(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Registers the plugin on a CPU, and returns an engine's loader of models."""
    class BaseModelLoader:
        def load_model(self, vllm_config: Any, model_config: Any = None, prefix: str = "") -> str:
            return "a model"

    module(monkeypatch, "vllm.model_executor.model_loader.base_loader", BaseModelLoader=BaseModelLoader)
    monkeypatch.setattr(vllm_plugin, "_device", lambda: "cpu")
    monkeypatch.setenv("MLAFIX_CACHE", "0")  # hides the kernels that other tests have compiled
    register(monkeypatch)
    return BaseModelLoader()


def test_calls_are_ready_once_a_model_is_loaded(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    loader = model_loader(monkeypatch)
    assert loader.load_model(vllm_config=config()) == "a model" and os.environ["MLAFIX_STRICT"] == "1"
    # 64 is the model's size of values, and 96 that of its queries, to which values may be padded. Calls of size 72 are
    # not made ready, so the engine's own function is called.
    for dim, falls in ((64, 0), (96, 0), (72, 1)):
        given = {name: torch.zeros(3, 2, dim, dtype=torch.bfloat16) for name in ("output", "prefix_output", "suffix_output")}
        engine.merge(**given, prefix_lse=torch.zeros(2, 3), suffix_lse=torch.zeros(2, 3))
        assert vllm_plugin.state is not None and vllm_plugin.state.tallies["merge_attn_states"].fallbacks == falls


def test_a_second_model_is_made_ready_too(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second model, such as a draft model, is loaded when compilation is already forbidden. Its kernels are made
    ready nevertheless."""
    loader = model_loader(monkeypatch)
    draft = config(dim=88).model_config
    for model in (config().model_config, draft):
        loader.load_model(vllm_config=config(), model_config=model)
    assert os.environ["MLAFIX_STRICT"] == "1"
    given = {name: torch.zeros(3, 2, 88, dtype=torch.bfloat16) for name in ("output", "prefix_output", "suffix_output")}
    engine.merge(**given, prefix_lse=torch.zeros(2, 3), suffix_lse=torch.zeros(2, 3))
    assert vllm_plugin.state is not None and vllm_plugin.state.tallies["merge_attn_states"].fallbacks == 0


def test_a_model_that_cannot_be_asked_is_loaded_all_the_same(engine: types.ModuleType, monkeypatch: pytest.MonkeyPatch,
                                                             caplog: pytest.LogCaptureFixture) -> None:
    class BaseModelLoader:
        def load_model(self, vllm_config: Any) -> str:
            return "a model"

    module(monkeypatch, "vllm.model_executor.model_loader.base_loader", BaseModelLoader=BaseModelLoader)
    register(monkeypatch)
    assert BaseModelLoader().load_model(object()) == "a model" and "calls are not made ready" in caplog.text


def test_requests_are_of_functions_that_are_replaced() -> None:
    names = ("merge_attn_states", "merge_state", "fixup_zero_kv_rows", "mask_empty_context")
    found = list(warm.requests(names, 2, [64, 128], torch.float16))
    assert len(found) == 2 * 7 and not list(warm.requests(["correct_attn_out"], 2, [64], torch.float16))


# -- SGLang ----------------------------------------------------------------------------------------------------------------


def hooks(monkeypatch: pytest.MonkeyPatch, real: bool) -> Any:
    """Installs SGLang's registry of hooks, or an imitation. The engine calls `apply_hooks` after it has loaded its
    plugins."""
    if real:
        text = release("sglang")("sglang/srt/plugins/hook_registry.py")
        made = module(monkeypatch, "sglang.srt.plugins.hook_registry")
        exec(compile(text, "hook_registry.py", "exec"), vars(made))
        return made

    class HookRegistry:
        registered: list[Any] = []

        @classmethod
        def register(cls, target: str, hook: Any, kind: str) -> None:
            cls.registered.append((target, hook, kind))

        @classmethod
        def apply_hooks(cls) -> None:
            for target, hook, kind in cls.registered:
                place, _, name = target.rpartition(".")
                if kind == "replace":
                    switch.rebind(getattr(sys.modules[place], name), hook)

    return module(monkeypatch, "sglang.srt.plugins.hook_registry", HookRegistry=HookRegistry, HookType=types.SimpleNamespace(REPLACE="replace", AFTER="after"))


@pytest.mark.parametrize("real", [False, True], ids=["like SGLang's", "SGLang's"])
def test_hooks_reach_modules_that_imported_a_function(real: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    def merge_state(prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any, output: Any = None, output_lse: Any = None) -> Any:
        return suffix_output, suffix_lse

    registry = hooks(monkeypatch, real)
    name = "sglang.srt.layers.attention.merge_state"
    # pkgutil.resolve_name imports these packages, so they must exist.
    for parent in ("sglang", "sglang.srt", "sglang.srt.layers", "sglang.srt.layers.attention"):
        vars(module(monkeypatch, parent)).update(__path__=[])
    place = module(monkeypatch, name, merge_state=merge_state)
    for parent, child in (("sglang", "srt"), ("sglang.srt", "layers"), ("sglang.srt.layers", "attention"), ("sglang.srt.layers.attention", "merge_state")):
        setattr(sys.modules[parent], child, sys.modules[f"{parent}.{child}"])
    user = module(monkeypatch, "sglang.srt.layers.attention.flashinfer_backend", merge_state=merge_state)
    monkeypatch.setenv("MLAFIX_SGLANG", "1")
    sglang_plugin.register()
    registry.HookRegistry.apply_hooks()
    assert user.merge_state is place.merge_state is not merge_state
    states = make_states(rng, 2, 5, 2, 64, F32, faults=False)
    given = [torch.from_numpy(part.copy()) for at in (0, 1) for part in (states.v[at], states.s[at])]
    out, lse = user.merge_state(*given)
    want, want_lse = contract.merge(states.v, states.s)
    want.check(out.numpy(), "output")
    want_lse.check(lse.numpy(), "output_lse")
    halves = [part.half() for part in given]  # SGLang accepts an lse in f16, mlafix refuses it
    assert user.merge_state(*halves)[0] is halves[2]
    state = sglang_plugin.state
    assert state is not None and (state.tallies["merge_state"].calls, state.tallies["merge_state"].fallbacks) == (2, 1)


def test_sglangs_runner_makes_calls_ready() -> None:
    model = types.SimpleNamespace(head_dim=192, v_head_dim=128, num_attention_heads=4)
    replaced = switch.Replaced("sglang", sglang_plugin.LOG)
    replaced.wanted = {"merge_state"}
    found = sglang_plugin.model_requests(replaced, types.SimpleNamespace(model_config=model, dtype=torch.float16))
    assert [given["prefix_output"].shape for _, given in found] == [(1, 4, 128), (1, 4, 192)]


# -- FlashInfer ------------------------------------------------------------------------------------------------------------


def test_flashinfers_solutions_merge(tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["flashinfer-solutions", "--heads", "2", "--heads", "8", "--dim", "64", "-o", str(tmp_path)]) == 0
    files = sorted(path.name for path in (tmp_path / "solutions").rglob("*.json"))
    assert files == [f"mlafix_{name}_h{heads}_d64.json" for name in ("merge_state", "merge_states") for heads in (2, 8)]
    made = json.loads((tmp_path / "solutions/mlafix/mlafix_merge_state_h2_d64.json").read_text())
    assert made["definition"] == "merge_state_h2_d64" and "sm90" in made["spec"]["target_hardware"]
    place: dict[str, Any] = {}
    exec(made["sources"][0]["content"], place)
    states = make_states(rng, 2, 5, 2, 64, F32, faults=False)
    given = {name: torch.from_numpy(part.copy()) for at, side in ((0, "a"), (1, "b")) for name, part in ((f"v_{side}", states.v[at]), (f"s_{side}", states.s[at]))}
    want, want_lse = contract.merge(states.v, states.s, base=2)
    out, lse = place["run"](**given)
    want.check(out.numpy(), "v_merged")
    want_lse.check(lse.numpy(), "s_merged")


def test_flashinfer_reads_the_solutions(tmp_path: Path) -> None:
    place: dict[str, Any] = {"__name__": "solution"}
    module_of = types.ModuleType("flashinfer_solution")
    sys.modules["flashinfer_solution"] = module_of
    place = vars(module_of)
    exec(compile(release("flashinfer-python")("flashinfer/trace/solution.py") or "", "solution.py", "exec"), place)
    for path in solutions.write(tmp_path, [32], [128]):
        made = place["Solution"].from_dict(json.loads(path.read_text()))
        assert made.spec.is_python_family and made.entry_symbol() == "run" and made.entry_source() is not None


# -- Signatures, tables, entry points --------------------------------------------------------------------------------------


def release(name: str) -> source.Read:
    """Returns a function that reads a file of an engine's wheel in MLAFIX_ENGINE_WHEELS. Skips the test if there is no
    wheel."""
    folder = Path(os.environ.get("MLAFIX_ENGINE_WHEELS", "/nowhere"))
    found = sorted(folder.glob(f"{name.replace('-', '_')}-*"), key=lambda path: path.is_file())
    if not found:
        pytest.skip(f"MLAFIX_ENGINE_WHEELS has no wheel of {name}")
    return source.wheel(found[0])


TEXT = '''
from .b import g as h
if True:
    def f(a, b: int = 1, *, c=-float("inf"), d=torch.bfloat16, e=torch.device): ...
class K:
    def __init__(self, x): ...
    @staticmethod
    def kernel(p, Q): ...
'''


def test_signatures_are_read_from_text() -> None:
    files = {"e/a.py": TEXT, "e/b.py": "def g(z, *rest, **names): ...", "e/__init__.py": ""}
    assert str(source.signature(files.get, "e.a", "f")) == "(a, b=1, *, c=-inf, d='bf16', e=torch.device)"
    assert str(source.signature(files.get, "e.a", "h")) == "(z, *rest, **names)"
    assert str(source.signature(files.get, "e.a", "K")) == "(x)" and str(source.signature(files.get, "e.a", "K.kernel")) == "(p, Q)"
    for name, reason in (("e.c", "no module e.c"), ("e.b", "e.b has no f")):
        with pytest.raises(LookupError, match=reason):
            source.signature(files.get, name, "f")


def test_the_command_says_what_would_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vllm-0.26.0.dist-info").mkdir()
    merge = ("def merge_attn_states(output, prefix_output, prefix_lse, suffix_output, suffix_lse, output_lse=None, "
             "prefill_tokens_with_context=None, output_scale=None): ...")
    texts = {"_custom_ops": merge, "v1/attention/ops/triton_merge_attn_states": merge.replace("output_scale", "sinks"),
             "v1/attention/ops/common": "def unpack_seq_triton(packed_tensor, lengths, block_t=64, block_d=64): ..."}
    for name, text in texts.items():
        path = tmp_path / "vllm" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("MLAFIX_VLLM", "unpack_seq_triton")
    assert command_line.main(["engines", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("vllm 0.26.0: MLAFIX_VLLM is unpack_seq_triton\n")
    lines = re.sub(r"\n {6}", " | ", re.sub(r" +", " ", said.replace("\n      ", " | "))).splitlines()
    assert " merge_attn_states operator since 0.26.0 with MLAFIX_VLLM=1 | _C::merge_attn_states" in lines
    assert " merge_attn_states function since 0.26.0 not: operator instead | vllm._custom_ops:merge_attn_states" in lines
    assert any("not: parameters that mlafix does not know: sinks" in line for line in lines)
    assert any(line.startswith(" unpack_seq_triton function since 0.26.0 replaced") for line in lines)
    assert any("neutralize" in line and "not: 0.26.0 is older than 0.28.0" in line for line in lines)


def test_versions() -> None:
    assert signatures.release_of("0.33.0+cu130") == (0, 33, 0) and signatures.release_of("0.5.10.post1") > signatures.release_of("0.5.10")
    seam = seams.VLLM[0]._replace(since="0.28.0", last="0.30.0")
    assert [bool(signatures.outside(seam.since, seam.last, version)) for version in ("0.27.1", "0.28.0", "0.30.0", "0.31.0", "")] == [True, False, False, True, False]


def test_every_seam_has_a_drop_in() -> None:
    for engine_name, table in seams.SEAMS.items():
        for seam in table:
            own = seams.drop_in(engine_name, seam.function)
            if seam.kind in ("function", "hook"):
                assert set(seam.writes) <= set(inspect.signature(own).parameters), seam


def test_entry_points_are_functions_that_do_nothing_by_themselves() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    found = dict(re.findall(r'\[project\.entry-points\."([\w.]+)"\]\nmlafix = "([\w.:]+)"', text))
    assert set(found) == {"vllm.general_plugins", "sglang.srt.plugins"}
    for group, value in found.items():
        entry = importlib.metadata.EntryPoint("mlafix", value, group)
        assert entry.load()() is None
    assert vllm_plugin.state is None and sglang_plugin.state is None


def test_the_page_names_every_seam() -> None:
    text = (ROOT / "docs" / "Engines.md").read_text(encoding="utf-8")
    for table in seams.SEAMS.values():
        for seam in table:
            assert f"`{seam.function}`" in text and seam.module in text and seam.since in text, seam


def drift(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `scripts/engine-drift`, which works without the package."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([sys.executable, ROOT / "scripts" / "engine-drift", *map(str, arguments)], capture_output=True, text=True, env=clean)


def test_drift_is_told(tmp_path: Path) -> None:
    """scripts/engine-drift reports a function that a release lacks, or that has one more parameter. It accepts a
    function that is as expected."""
    (tmp_path / "attn_gym-0.0.18.dist-info").mkdir()
    (tmp_path / "attn_gym").mkdir()
    text = "def merge_attention(out, lse, other_out, other_lse): ..."
    for text, said in ((text, ""), (text.replace("):", ", sinks=None):"), "parameters that mlafix does not know: sinks"), ("", "attn_gym.utils has no merge_attention")):
        (tmp_path / "attn_gym" / "utils.py").write_text(text)
        done = drift(tmp_path)
        want = f"attn-gym 0.0.18: attn_gym.merge_attention: {said}\n" if said else ""
        assert (done.returncode, done.stdout) == (int(bool(said)), want), done.stderr


def test_drop_ins_are_compared_with_the_release_that_they_follow(tmp_path: Path) -> None:
    """A release is compared with the drop-ins that follow it, and with no others. vLLM 0.27.1 is the last release with
    some functions, and their drop-ins follow that release."""
    (tmp_path / "vllm-0.27.1.dist-info").mkdir()
    (tmp_path / "vllm").mkdir()
    said = drift(tmp_path).stdout
    assert "vllm 0.27.1: vllm.mask_empty_context:" in said and "vllm.neutralize_empty_context_partials:" not in said, said


def test_releases_have_no_drift() -> None:
    wheels = sorted(Path(os.environ.get("MLAFIX_ENGINE_WHEELS", "/nowhere")).glob("*.whl"))
    if not wheels:
        pytest.skip("MLAFIX_ENGINE_WHEELS has no wheels")
    done = drift(*wheels)
    assert (done.returncode, done.stdout) == (0, ""), done
