"""Defines the plugin of vLLM: entry point `vllm.general_plugins`. MLAFIX_VLLM selects what the plugin replaces. If
MLAFIX_VLLM is unset or 0, the plugin does nothing.

vLLM calls the plugin in each of its processes, in some of them more than once.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from typing import Any

from .. import _env
from . import seams
from .imports import when_imported
from .replace import Make, find, fitting, installed, replace_all
from .seams import Seam
from .signatures import unknown
from .switch import Function, Log, Replaced, choice_of, rebind
from .warm import requests, warm

LOG = Log("vllm.mlafix")  # a child of vLLM's logger, so it has the level and format of that logger

LOADER = "vllm.model_executor.model_loader.base_loader"

state: Replaced | None = None
"""The functions that were replaced in this process. None before `register`, and if MLAFIX_VLLM is off."""

_libraries: list[Any] = []  # keeps torch.library.Library objects alive, since an override ends with its object

def register() -> None:
    """Replaces the functions that MLAFIX_VLLM asks for. Never raises. Does nothing when it is called again."""
    global state
    choice = choice_of(_env.engine("vllm"))
    if choice is None or state is not None:
        return
    state = Replaced("vllm", LOG)
    try:
        ways = {"operator": replace_operator, "kernel": replace_kernel, "function": replace_function}
        replace_all("vllm", installed("vllm"), choice, ways, state, when_imported)
        when_imported(LOADER, functools.partial(warm_when_models_load, state))
        if choice.counts:
            state.report_at_exit()
        state.say()
    except Exception:
        LOG.logger.exception("mlafix: the plugin failed; vLLM goes on")


def named(names: tuple[str, ...], function: Function) -> Function:
    """Returns a function with the parameters `names`, which passes its arguments to `function` by name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(**dict(zip(names, args)), **kwargs)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in names]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def replace_operator(seam: Seam, make: Make, key: str = "CUDA") -> str:
    """Overrides an operator of torch's dispatcher for one dispatch key. Returns "", or the reason why this is
    impossible."""
    import torch

    namespace, _, name = seam.place.partition("::")
    operator = getattr(getattr(torch.ops, namespace), name, None)
    if operator is None:
        return f"torch has no operator {seam.place} here"
    names = tuple(argument.name for argument in operator.default._schema.arguments)
    if reason := unknown(names, seam.parameters):
        return reason
    if not hasattr(torch.library, "get_kernel"):
        return f"torch {torch.__version__} does not give the operator's own kernel away (torch.library.get_kernel)"
    kernel = torch.library.get_kernel(operator.default, key)
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    own = named(names, lambda **given: kernel.call_boxed(keys, *(given.get(argument) for argument in names)))
    library = torch.library.Library(namespace, "IMPL")
    library.impl(name, make(own, named(names, seams.drop_in("vllm", seam.function))), key, allow_override=True)
    _libraries.append(library)
    return ""


def replace_kernel(seam: Seam, make: Make) -> str:
    """Registers a stand-in for a Triton kernel that is launched with the grid [tokens, heads]. Returns "", or the
    reason why this is impossible."""
    try:
        dispatcher = importlib.import_module("vllm.triton_utils.dispatcher")
    except ImportError:
        return "no vllm.triton_utils.dispatcher"
    kernel = find(seam)
    names = tuple(getattr(kernel, "arg_names", None) or inspect.signature(getattr(kernel, "func", kernel)).parameters)
    if names != seams.MERGE_KERNEL:
        return f"arguments that mlafix does not know: {', '.join(name for name in names if name not in seams.MERGE_KERNEL) or 'another order'}"
    merge = seams.drop_in("vllm", seam.function)

    def own(**given: Any) -> None:
        kernel[given["output"].shape[:2]](**given)

    def mine(**given: Any) -> None:
        merge(**{name: given.get(name) for name in seam.parameters})

    dispatcher.register_kernels({f"{seam.module}.{seam.attribute}": make(named(names, own), named(names, mine))})
    return ""


def replace_function(seam: Seam, make: Make) -> str:
    """Replaces a function of vLLM in every module that holds it. Returns "". Raises LookupError if the drop-in does not
    fit."""
    own, mine = fitting(seam, "vllm")
    rebind(own, make(own, mine))
    return ""


def warm_when_models_load(replaced: Replaced) -> None:
    """Makes vLLM's model loader prepare mlafix's calls after it has loaded a model. Never raises."""
    loader = getattr(sys.modules[LOADER], "BaseModelLoader", None)
    own = getattr(loader, "load_model", None)
    if loader is None or own is None:
        LOG.say(f"calls are made ready by the first of them: {LOADER} has no BaseModelLoader.load_model")
        return

    @functools.wraps(own)
    def load_model(self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> Any:
        model = own(self, vllm_config, *args, **kwargs)
        try:
            given = inspect.signature(own).bind(self, vllm_config, *args, **kwargs).arguments
            warm(model_requests(replaced, vllm_config, given.get("model_config")), _device(), LOG)
        except Exception:
            LOG.logger.exception("mlafix: calls are not made ready; vLLM goes on")
        return model

    loader.load_model = load_model


def model_requests(replaced: Replaced, vllm_config: Any, model_config: Any = None) -> list[Any]:
    """Returns the warm-up requests for a model. They depend on the model's number of heads per rank, row lengths and
    dtype. If `model_config` is None, the model is that of `vllm_config`."""
    model = model_config or vllm_config.model_config
    text = getattr(model, "hf_text_config", None)
    dims = {model.get_head_size()}
    if getattr(model, "use_mla", False):
        nope, rope = getattr(text, "qk_nope_head_dim", 0), getattr(text, "qk_rope_head_dim", 0)
        # Rows may also be as long as queries, since FlashAttention 2 pads values to the size of queries.
        dims = {dim for dim in (getattr(text, "v_head_dim", 0), nope + rope) if dim}
    heads = model.get_num_attention_heads(vllm_config.parallel_config)
    return list(requests(replaced.wanted, heads, sorted(dims), model.dtype))


def _device() -> str:
    import torch

    return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "cpu"
