"""Defines the plugin of SGLang: entry point `sglang.srt.plugins`. MLAFIX_SGLANG selects what the plugin replaces.
If MLAFIX_SGLANG is unset or 0, the plugin does nothing.

SGLang applies hooks after all plugins are loaded, even to modules that have already imported a function.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import _env
from .replace import Make, fitting, installed, replace_all
from .seams import Seam
from .switch import Log, Replaced, choice_of
from .warm import requests, warm

LOG = Log("sglang.mlafix")

LOADER = "sglang.srt.model_executor.model_runner.ModelRunner.load_model"

REPORT_SECONDS = 10.0

state: Replaced | None = None
"""The functions that were replaced in this process. None before `register`, and if MLAFIX_SGLANG is off."""


def register() -> None:
    """Registers the hooks that MLAFIX_SGLANG asks for. Never raises. Does nothing when it is called again."""
    global state
    choice = choice_of(_env.engine("sglang"))
    if choice is None or state is not None:
        return
    state = Replaced("sglang", LOG)
    try:
        replace_all("sglang", installed("sglang"), choice, {"hook": replace_by_hook}, state, lambda module, call: call())
        warm_when_models_load(state)
        if choice.counts:
            state.report_at_exit()
            state.report_each(REPORT_SECONDS)  # SGLang kills its processes before exit handlers run
        state.say()
    except Exception:
        LOG.logger.exception("mlafix: the plugin failed; SGLang goes on")


def replace_by_hook(seam: Seam, make: Make) -> str:
    """Registers a REPLACE hook. Returns "". Raises LookupError if the drop-in does not fit."""
    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
    own, mine = fitting(seam, "sglang")
    hooks.HookRegistry.register(f"{seam.module}.{seam.attribute}", make(own, mine), hooks.HookType.REPLACE)
    return ""


def warm_when_models_load(replaced: Replaced) -> None:
    """Makes SGLang's runner prepare mlafix's calls after it has loaded a model."""
    if not replaced.places:
        return
    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")

    def after(result: Any, runner: Any, *args: Any, **kwargs: Any) -> None:
        try:
            warm(model_requests(replaced, runner), _device(runner), LOG)
        except Exception:
            LOG.logger.exception("mlafix: calls are not made ready; SGLang goes on")

    hooks.HookRegistry.register(LOADER, after, hooks.HookType.AFTER)


def model_requests(replaced: Replaced, runner: Any) -> list[Any]:
    """Returns the warm-up requests for the runner's model. They depend on its number of heads over all ranks, its head
    dims and its dtype."""
    model = runner.model_config
    dims = {dim for dim in (getattr(model, "v_head_dim", 0), getattr(model, "head_dim", 0)) if dim}
    return list(requests(replaced.wanted, model.num_attention_heads, sorted(dims), runner.dtype))


def _device(runner: Any) -> str:
    return f"cuda:{runner.gpu_id}" if runner.device == "cuda" else "cpu"
