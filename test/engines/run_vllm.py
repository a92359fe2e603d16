"""Runs an installed vLLM on a small random model, with and without mlafix's plugin. README.md beside this file explains the
output."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from models import write

RUNS = {"vllm": "0", "vllm again": "0", "mlafix": "1,count", "compare": "compare"}
"""The runs, with the value of MLAFIX_VLLM in each."""

TIMED = ("vllm", "mlafix")

COUNTS = (1, 16, 64)
"""The numbers of concurrent requests for which times to the first token and per further token are measured."""

FURTHER = 16
"""The number of tokens after the first over which the time per further token is measured."""

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
    parser.add_argument("--turn", type=Path, help="a new file that other run_vllm.py share: none uses the GPU with another (default: one in --out)")
    parser.add_argument("--engines", type=int, default=len(RUNS), help="engines that share it")
    parser.add_argument("--allow", type=int, default=-1, help="requests whose tokens may differ from vLLM's")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)  # runs one of RUNS in its own process
    return parser.parse_args()


# -- One run --------------------------------------------------------------------------------------------------------------


def prompts(model: str) -> list[list[int]]:
    """Returns requests that share a whole prefix, a part of it, or nothing, in a mixed order."""
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
               kv_cache_memory_bytes=int(options.memory * 2**30), gpu_memory_utilization=0.05, disable_log_stats=True, max_logprobs=20, generation_config="vllm", **more)


def generate(llm: Any, requests: list[list[int]], tokens: int) -> list[Any]:
    from vllm import SamplingParams

    sampling = SamplingParams(temperature=0, max_tokens=tokens, logprobs=20, ignore_eos=True, detokenize=False)
    return list(llm.generate([{"prompt_token_ids": request} for request in requests], sampling, use_tqdm=False))


def wait_until(is_so: Callable[[], Any], seconds: float, step: float = 0.1) -> Any:
    """Asks every `step` seconds until the answer is true or time is up. Returns the last answer."""
    until = time.monotonic() + seconds
    while not (answer := is_so()) and time.monotonic() < until:
        time.sleep(step)
    return answer


@contextlib.contextmanager
def turn(file: Path, engines: int) -> Iterator[None]:
    """Waits until `engines` engines are ready, or for three minutes. Then runs the body while no other engine does, so
    that only one is timed at a time."""
    file.with_name(f"{file.name}.{os.getpid()}").touch()
    wait_until(lambda: len(list(file.parent.glob(f"{file.name}.*"))) >= engines, 180)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kernels(llm: Any, requests: list[list[int]], tokens: int) -> dict[str, Any]:
    """Returns the GPU's work for these requests: launches and microseconds, in total and by kernel name. Also returns
    the number of the engine's steps."""
    import torch

    steps, own = [], llm.llm_engine.step
    llm.llm_engine.step = lambda: steps.append(1) or own()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        generate(llm, requests, tokens)
        torch.cuda.synchronize()
    llm.llm_engine.step = own
    found: dict[str, list[float]] = {}
    for event in profile.events():
        if event.device_type.name == "CUDA":
            row = found.setdefault(event.name[:160], [0, 0.0])
            row[0] += 1
            row[1] = round(row[1] + event.time_range.elapsed_us(), 1)
    return {"steps": len(steps), "launches": sum(row[0] for row in found.values()), "microseconds": round(sum(row[1] for row in found.values()), 1), "by name": found}


def seconds_of(llm: Any, first: list[int], requests: list[list[int]], tokens: int) -> float:
    """Returns the seconds until every request has `tokens` tokens. At the beginning, the prefix cache contains only
    `first`, a part of which some requests share."""
    import torch

    llm.reset_prefix_cache()
    generate(llm, [first], 1)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    generate(llm, requests, tokens)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def serving(seconds: Callable[[list[list[int]], int], float], shared: list[int], rounds: Iterable[Any]) -> dict[str, list[float]]:
    """Returns two medians over the rounds, by the number of requests: the milliseconds until all requests have their
    first token, and the milliseconds per further token.

    Each request has 128 tokens of its own, and every second one begins with the shared prefix.

    Args:
        seconds: serves requests until each has the given number of tokens, and returns the seconds.
        rounds: yields when a round may begin. The first round is not counted, since some code is compiled or captured
            at first use.
    """
    import torch

    generator = torch.Generator().manual_seed(7)
    requests, times = {}, {}
    for count in COUNTS:
        fresh = torch.randint(2, 4096, (count, 128), generator=generator).tolist()
        requests[count], times[count] = [(shared[:1024] if at % 2 == 0 else []) + tokens for at, tokens in enumerate(fresh)], []
    for _ in rounds:
        for count in COUNTS:
            times[count].append((seconds(requests[count], 1), seconds(requests[count], 1 + FURTHER)))
    return {str(count): [round(1e3 * statistics.median(one for one, _ in found[1:]), 3),
                         round(1e3 * statistics.median(all_ - one for one, all_ in found[1:]) / FURTHER, 3)] for count, found in times.items()}  # fmt: skip


def alternately(file: Path, at: int, engines: int, rounds: int, limit: float = 240.0) -> Iterator[int]:
    """Yields the number of each round once it is this engine's turn. Engines take turns in each round, and this engine
    is number `at`."""
    for number in range(rounds):
        mine = number * engines + at
        if not wait_until(lambda mine=mine: (int(file.read_text(encoding="utf-8") or 0) if file.exists() else 0) == mine, limit, 0.01):
            raise TimeoutError(f"expected round {mine} in {file}")
        yield number
        file.write_text(str(mine + 1), encoding="utf-8")


def run(options: argparse.Namespace) -> None:
    from mlafix.engines import vllm as plugin

    plugin.register()  # needed if mlafix is only on PYTHONPATH; else vLLM calls register() too, and one call does nothing
    import torch
    import vllm

    begin = time.perf_counter()
    first, *rest = prompts(options.model)
    llm = engine(options)
    started = time.perf_counter() - begin
    state = plugin.state
    with turn(options.turn or options.out / "turn", options.engines):
        generate(llm, [first], 1)
        found = generate(llm, rest, 8)
        result = {
            "vllm": vllm.__version__, "torch": torch.__version__, "device": torch.cuda.get_device_name(), "seconds to start": round(started, 1),
            "replaced": state.places if state else {}, "left": state.left if state else {},
            "calls": {name: [tally.calls, tally.fallbacks] for name, tally in state.tallies.items()} if state else {},
            "report": [tally.line() for tally in state.tallies.values() if tally.calls] if state else [],
            "outputs": [{"tokens": list(one.outputs[0].token_ids), "cached": one.num_cached_tokens,
                         "logprobs": [{str(token): value.logprob for token, value in step.items()} for step in one.outputs[0].logprobs]} for one in found],
        }  # fmt: skip
        if options.run in TIMED:
            seconds_of(llm, first, rest, 1)
            result["seconds"] = statistics.median(seconds_of(llm, first, rest, 1) for _ in range(options.rounds))
            result["serving"] = serving(lambda requests, tokens: seconds_of(llm, first, requests, tokens), first, range(1 + options.rounds))
            llm.reset_prefix_cache()
            generate(llm, [first], 1)
            result["prefill"], result["decode"] = kernels(llm, rest, 1), kernels(llm, [request[:40] for request in rest], 1 + FURTHER)
    (options.out / f"{options.run}.json").write_text(json.dumps(result, indent=1), encoding="utf-8")


# -- All runs -------------------------------------------------------------------------------------------------------------


def difference(a: list[Any], b: list[Any]) -> tuple[int, float]:
    """Returns the number of requests whose tokens differ. Also returns the largest difference of a logprob up to the
    first different token of a request."""
    differ, largest = 0, 0.0
    for one, other in zip(a, b):
        first = next((at for at, pair in enumerate(zip(one["tokens"], other["tokens"])) if pair[0] != pair[1]), None)
        differ += first is not None
        for here, there in list(zip(one["logprobs"], other["logprobs"]))[: None if first is None else first + 1]:
            largest = max([largest, *(abs(value - there[token]) for token, value in here.items() if token in there)])
    return differ, largest


def print_serving(name: str, result: dict[str, Any]) -> None:
    for count, (first, further) in result["serving"].items():
        print(f"{name:12} {count:>2} requests: {first:.2f} ms to the first token, {further:.3f} ms per token")


def print_times(theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    """Prints the times and launches of both runs, and the kernels that only one of them launches."""
    for name, one in (("vllm", theirs), ("mlafix", mine)):
        print(f"{name:11} started in {one['seconds to start']} s; the requests above {1e3 * one['seconds']:.2f} ms")
        print_serving(name, one)
        for work in ("prefill", "decode"):
            made = one[work]
            print(f"{name:11} {work}: {made['steps']} steps, {made['launches']} launches, {made['microseconds']:.1f} us of kernels")
    for work in ("prefill", "decode"):
        for name, one, other in (("vllm", theirs, mine), ("mlafix", mine, theirs)):
            for kernel, (launches, microseconds) in one[work]["by name"].items():
                if launches != other[work]["by name"].get(kernel, [0])[0]:
                    print(f"{name:11} {work}: {launches} x {kernel[:90]}: {microseconds:.1f} us")


def summary(results: dict[str, Any], allow: int) -> list[str]:
    """Prints the findings of the runs. Returns the errors."""
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
    print_times(theirs, mine)
    wrong = []
    if not mine["replaced"] or not sum(calls for calls, _ in mine["calls"].values()):
        wrong.append("nothing was replaced, or nothing of it was called")
    if fallbacks := {name: count for name, (_, count) in mine["calls"].items() if count}:
        wrong.append(f"calls fell back to vLLM's functions: {fallbacks}")
    if ours[0] > (allow if allow >= 0 else again[0] + 1):
        wrong.append(f"tokens differ in {ours[0]} requests")
    return wrong


def run_all(out: Path, runs: Mapping[str, str], variable: str, environment: Mapping[str, str], summary: Callable[[dict[str, Any]], list[str]]) -> int:
    """Starts this program once for each of `runs`, with the run's value in the environment variable `variable`. Returns
    exit status 1 if a run fails, or if `summary` finds errors in the results in the folder `out`."""
    for old in out.glob("turn*"):
        old.unlink()
    running = {}
    for name, value in runs.items():  # the runs start together, since an engine starts slowly; they take turns on the GPU
        with (out / f"{name}.log").open("w", encoding="utf-8") as log:
            command = [sys.executable, *sys.argv, "--run", name]
            running[name] = subprocess.Popen(command, env={**os.environ, **environment, variable: value}, stdout=log, stderr=subprocess.STDOUT)
    failed = [name for name, process in running.items() if process.wait()]
    for name in failed:
        log = out / f"{name}.log"
        print(f"{name} failed: {log}\n" + log.read_text(encoding="utf-8", errors="replace")[-2000:])
    if failed:
        return 1
    wrong = summary({name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in runs})
    for line in wrong:
        print(f"wrong: {line}")
    return int(bool(wrong))


def main() -> int:
    options = arguments()
    if options.run:
        run(options)
        return 0
    write(options.out / "model", options.model, options.heads)
    return run_all(options.out, RUNS, "MLAFIX_VLLM", ENVIRONMENT, lambda results: summary(results, options.allow))


if __name__ == "__main__":
    sys.exit(main())
