"""An installed vLLM on a small random model, with and without mlafix's plugin: README.md beside this file says what is printed."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from models import write

RUNS = {"vllm": "0", "vllm again": "0", "mlafix": "1,count", "compare": "compare"}
"""The runs, and MLAFIX_VLLM in each."""

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0", "TOKENIZERS_PARALLELISM": "false",
}  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run_vllm.py", description="vLLM on a small random model, with and without mlafix's plugin.")
    parser.add_argument("--model", choices=("mla", "gqa"), default="mla")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", action="store_true", help="compile and capture graphs, as vLLM does by default; else eager")
    parser.add_argument("--cascade", action="store_true", help="cascade attention over shared prefixes (gqa)")
    parser.add_argument("--workspace", type=int, default=2048, help="tokens of context that a chunk holds (mla)")
    parser.add_argument("--memory", type=float, default=2.0, help="GiB for the KV cache")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are timed")
    parser.add_argument("--allow", type=int, default=-1, help="requests whose tokens may differ from vLLM's")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)  # one run, in a process of its own
    return parser.parse_args()


# -- One run --------------------------------------------------------------------------------------------------------------


def prompts(model: str) -> list[list[int]]:
    """Requests that share a prefix, some of it, or nothing, in an order that mixes them."""
    import torch

    generator = torch.Generator().manual_seed(5)

    def ids(count: int) -> list[int]:
        return torch.randint(2, 4096, (count,), generator=generator).tolist()

    shared = ids(1536)
    if model == "gqa":
        return [shared, *(shared + ids(count) for count in [5, 17, 33, 64, 90, 128, 1, 48] * 4)]
    shapes = [(1536, 100), (0, 30), (512, 41), (0, 300), (64, 5), (1536, 1), (0, 3000), (1024, 700), (0, 7), (256, 260), (0, 1200), (1472, 33)]
    return [shared, *(shared[:cached] + ids(fresh) for cached, fresh in shapes)]


def engine(options: argparse.Namespace) -> Any:
    from vllm import LLM

    if options.model == "mla":
        from vllm.model_executor.layers.attention.mla_attention import MLACommonMetadataBuilder

        MLACommonMetadataBuilder.determine_chunked_prefill_workspace_size = staticmethod(lambda config: options.workspace)
    more: dict[str, Any] = {"compilation_config": {"cudagraph_capture_sizes": [1, 2, 4, 8, 16]}} if options.graphs else {"enforce_eager": True}
    if options.model == "gqa":
        more["disable_cascade_attn"] = not options.cascade
    return LLM(model=str(options.out / "model"), skip_tokenizer_init=True, dtype="bfloat16", seed=0, max_model_len=8192, max_num_seqs=64,
               max_num_batched_tokens=4096 if options.model == "gqa" else 1024, enable_prefix_caching=True, enable_chunked_prefill=True,
               kv_cache_memory_bytes=int(options.memory * 2**30), disable_log_stats=True, max_logprobs=20, generation_config="vllm", **more)


def generate(llm: Any, requests: list[list[int]], tokens: int) -> list[Any]:
    from vllm import SamplingParams

    sampling = SamplingParams(temperature=0, max_tokens=tokens, logprobs=20, ignore_eos=True, detokenize=False)
    return list(llm.generate([{"prompt_token_ids": request} for request in requests], sampling, use_tqdm=False))


def kernels(llm: Any, requests: list[list[int]]) -> dict[str, Any]:
    """What the GPU runs for one token of each request."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        generate(llm, requests, 1)
        torch.cuda.synchronize()
    found = [event for event in profile.events() if event.device_type.name == "CUDA"]
    merges = [event for event in found if "merge" in event.name]
    return {"launches": len(found), "microseconds": round(sum(event.time_range.elapsed_us() for event in found), 1),
            "merges": len(merges), "microseconds of merges": round(sum(event.time_range.elapsed_us() for event in merges), 1)}


def run(options: argparse.Namespace) -> None:
    from mlafix.engines import vllm as plugin

    plugin.register()  # where mlafix is on PYTHONPATH alone; else vLLM has called it, and it does nothing
    import torch
    import vllm

    first, *rest = prompts(options.model)
    llm = engine(options)
    generate(llm, [first], 1)
    found = generate(llm, rest, 8)
    seconds = []
    for _ in range(options.rounds):
        llm.reset_prefix_cache()
        generate(llm, [first], 1)
        begin = time.perf_counter()
        generate(llm, rest, 1)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    llm.reset_prefix_cache()
    generate(llm, [first], 1)
    state = plugin.state
    result = {
        "vllm": vllm.__version__, "torch": torch.__version__, "device": torch.cuda.get_device_name(), "seconds": statistics.median(seconds),
        "replaced": state.places if state else {}, "left": state.left if state else {},
        "calls": {name: [tally.calls, tally.fallbacks] for name, tally in state.tallies.items()} if state else {},
        "report": [tally.line() for tally in state.tallies.values() if tally.calls] if state else [], "step": kernels(llm, rest),
        "outputs": [{"tokens": list(one.outputs[0].token_ids), "cached": one.num_cached_tokens,
                     "logprobs": [{str(token): value.logprob for token, value in step.items()} for step in one.outputs[0].logprobs]} for one in found],
    }  # fmt: skip
    (options.out / f"{options.run}.json").write_text(json.dumps(result, indent=1), encoding="utf-8")


# -- All runs -------------------------------------------------------------------------------------------------------------


def difference(a: list[Any], b: list[Any]) -> tuple[int, float]:
    """Requests whose tokens differ, and the largest difference of a logprob up to the first token that does."""
    differ, largest = 0, 0.0
    for one, other in zip(a, b):
        first = next((at for at, pair in enumerate(zip(one["tokens"], other["tokens"])) if pair[0] != pair[1]), None)
        differ += first is not None
        for here, there in list(zip(one["logprobs"], other["logprobs"]))[: None if first is None else first + 1]:
            largest = max([largest, *(abs(value - there[token]) for token, value in here.items() if token in there)])
    return differ, largest


def summary(results: dict[str, Any], allow: int) -> list[str]:
    """Prints what the runs show; returns what is wrong."""
    theirs, mine = results["vllm"], results["mlafix"]
    print(f"vLLM {theirs['vllm']}, torch {theirs['torch']}, {theirs['device']}")
    for name, why in mine["left"].items():
        print(f"  not {name}: {why}")
    for line in [*mine["report"], *results["compare"]["report"]]:
        print(f"  {line}")
    again = difference(theirs["outputs"], results["vllm again"]["outputs"])
    ours = difference(theirs["outputs"], mine["outputs"])
    for name, (differ, largest) in (("vllm again", again), ("mlafix", ours)):
        print(f"{name:11} tokens differ in {differ} of {len(theirs['outputs'])} requests, logprobs by at most {largest:.4f}")
    for name in ("vllm", "mlafix"):
        print(f"{name:11} {results[name]['seconds']:.4f} s; one step: {results[name]['step']}")
    wrong = []
    if not mine["replaced"] or not sum(calls for calls, _ in mine["calls"].values()):
        wrong.append("nothing was replaced, or nothing of it was called")
    if fallbacks := {name: count for name, (_, count) in mine["calls"].items() if count}:
        wrong.append(f"calls fell back to vLLM's functions: {fallbacks}")
    if ours[0] > (allow if allow >= 0 else again[0] + 1):
        wrong.append(f"tokens differ in {ours[0]} requests")
    return wrong


def main() -> int:
    options = arguments()
    if options.run:
        run(options)
        return 0
    write(options.out / "model", options.model, options.heads)
    results = {}
    for name, variable in RUNS.items():
        log = options.out / f"{name}.log"
        with log.open("w", encoding="utf-8") as file:
            done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--run", name], env={**os.environ, **ENVIRONMENT, "MLAFIX_VLLM": variable},
                                  stdout=file, stderr=subprocess.STDOUT)
        if done.returncode:
            print(f"{name} failed: {log}\n" + log.read_text(encoding="utf-8")[-2000:])
            return 1
        results[name] = json.loads((options.out / f"{name}.json").read_text(encoding="utf-8"))
    wrong = summary(results, options.allow)
    for line in wrong:
        print(f"wrong: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
