"""Runs an installed SGLang on a small random model with MLA, with and without mlafix's plugin. README.md beside this file explains the
output."""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from models import write
from run_vllm import alternately, difference, print_serving, prompts, run_all, serving, turn, wait_until

RUNS = {"sglang": "0", "sglang again": "0", "mlafix": "1", "compare": "compare"}
"""The runs, with the value of MLAFIX_SGLANG in each."""

TIMED = ("sglang", "mlafix")

ENVIRONMENT = {
    "SGLANG_MAX_KV_CHUNK_CAPACITY": "2048", "SGLANG_CHUNKED_PREFIX_CACHE_THRESHOLD": "1", "SGLANG_ENABLE_JIT_DEEPGEMM": "0", "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
}  # fmt: skip
"""The variables of every run. They make SGLang read contexts of any length in chunks of 2048 tokens."""

MERGES = re.compile("merge", re.IGNORECASE)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run_sglang.py", description="SGLang on a small random model, with and without mlafix's plugin.")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--memory", type=float, default=0.5, help="part of the GPU's memory that SGLang may take; the KV cache has 65536 tokens")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are timed, those with the plugin and without in turn")
    parser.add_argument("--allow", type=int, default=-1, help="requests whose tokens may differ from SGLang's")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)  # runs one of RUNS in its own process
    return parser.parse_args()


# -- One run --------------------------------------------------------------------------------------------------------------


def engine(options: argparse.Namespace, number: int, **more: Any) -> Any:
    from sglang.srt.entrypoints.engine import Engine

    given = {"attention_backend": "fa3", "disable_cuda_graph": True, **more}
    return Engine(model_path=str(options.out / "model"), skip_tokenizer_init=True, sampling_backend="pytorch", dtype="bfloat16", random_seed=0, context_length=8192,
                  max_running_requests=64, chunked_prefill_size=1024, mem_fraction_static=options.memory, max_total_tokens=65536, log_level="info",
                  port=31000 + 100 * number, **given)  # fmt: skip


def flush(server: Any) -> None:
    """Empties the prefix cache. Retries, since SGLang refuses this until all requests have ended."""
    wait_until(lambda: getattr(server.flush_cache(), "success", True), 5, 0.01)


def seconds_of(server: Any, first: list[int], requests: list[list[int]], tokens: int) -> float:
    """Returns the seconds until every request has `tokens` tokens. At the beginning, the prefix cache contains only
    `first`, a part of which some requests share."""
    flush(server)
    server.generate(input_ids=[first], sampling_params=sampling(1))
    begin = time.perf_counter()
    server.generate(input_ids=requests, sampling_params=sampling(tokens))
    return time.perf_counter() - begin


def sampling(tokens: int) -> dict[str, Any]:
    return {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}


def generate(server: Any, requests: list[list[int]], tokens: int) -> list[dict[str, Any]]:
    found = server.generate(input_ids=requests, sampling_params=sampling(tokens), return_logprob=True, top_logprobs_num=20)
    return [{"tokens": one["output_ids"], "cached": one["meta_info"]["cached_tokens"],
             "logprobs": [{str(token): value for value, token, *_ in step} for step in one["meta_info"]["output_top_logprobs"]]} for one in found]


def kernels(server: Any, folder: Path, first: list[int], requests: list[list[int]]) -> dict[str, list[float]]:
    """Returns [launches, microseconds] by kernel name, for a prefill of `requests`."""
    flush(server)
    generate(server, [first], 1)
    server.start_profile(output_dir=str(folder), activities=["GPU"])
    generate(server, requests, 1)
    server.stop_profile()
    traces = wait_until(lambda: list(folder.glob("*.trace.json.gz")), 20)
    found: dict[str, list[float]] = {}
    for trace in traces:
        for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]:
            if event.get("cat") == "kernel":
                row = found.setdefault(event["name"][:160], [0, 0.0])
                row[0] += 1
                row[1] = round(row[1] + event["dur"], 1)
    return found


def run(options: argparse.Namespace) -> None:
    import sglang
    import torch

    begin = time.perf_counter()
    at = list(RUNS).index(options.run)
    server = engine(options, at)
    started = time.perf_counter() - begin
    first, *rest = prompts("mla")
    with turn(options.out / "turn", len(RUNS)):
        generate(server, [first], 1)
        result: dict[str, Any] = {
            "sglang": sglang.__version__, "torch": torch.__version__, "device": torch.cuda.get_device_name(), "seconds to start": round(started, 1),
            "outputs": generate(server, rest, 8),
        }  # fmt: skip
        if options.run in TIMED:
            result["kernels"] = kernels(server, options.out / f"trace-{options.run}", first, rest)
        (options.out / f"turn-done-{at}").touch()
    (options.out / f"{options.run}.json").write_text(json.dumps(result), encoding="utf-8")
    if options.run == "compare":
        # SGLang kills its processes, so the plugin reports every ten seconds and not at exit. Waits for such a report.
        log = options.out / "compare.log"
        wait_until(lambda: "; compared " in log.read_text(encoding="utf-8", errors="replace"), 15)
    if options.run in TIMED:
        if not wait_until(lambda: len(list(options.out.glob("turn-done-*"))) == len(RUNS), 180):
            raise TimeoutError("expected all runs to have had the GPU to themselves")
        rounds = alternately(options.out / "turn-of-rounds", TIMED.index(options.run), len(TIMED), 1 + options.rounds)
        result["serving"] = serving(lambda requests, tokens: seconds_of(server, first, requests, tokens), first, rounds)
    (options.out / f"{options.run}.json").write_text(json.dumps(result), encoding="utf-8")
    server.shutdown()


# -- All runs -------------------------------------------------------------------------------------------------------------


def said(options: argparse.Namespace, name: str) -> list[str]:
    """Returns the lines that the plugin wrote to the log of the run `name`."""
    text = (options.out / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    return list(dict.fromkeys(line[line.index("mlafix: ") :] for line in text.splitlines() if "mlafix: " in line))


def summary(options: argparse.Namespace, results: dict[str, Any]) -> list[str]:
    """Prints the findings of the runs. Returns the errors."""
    theirs, mine = results["sglang"], results["mlafix"]
    print(f"SGLang {theirs['sglang']}, torch {theirs['torch']}, {theirs['device']}; started in {theirs['seconds to start']} s, with mlafix in {mine['seconds to start']} s")
    compared = [line for line in said(options, "compare") if "; compared " in line]
    print("\n".join(f"  {line}" for line in [*said(options, "mlafix"), *compared]))
    again = difference(theirs["outputs"], results["sglang again"]["outputs"])
    ours = difference(theirs["outputs"], mine["outputs"])
    for name, (differ, largest) in (("sglang again", again), ("mlafix", ours)):
        print(f"{name:12} tokens differ in {differ} of {len(theirs['outputs'])} requests, logprobs by at most {largest:.4f}")
    merges = {}
    for name, one in (("sglang", theirs), ("mlafix", mine)):
        made = one["kernels"]
        merges[name] = {kernel: row for kernel, row in made.items() if MERGES.search(kernel)}
        print(f"{name:12} prefill: {sum(row[0] for row in made.values())} launches, {sum(row[1] for row in made.values()):.1f} us of kernels")
        for kernel, (launches, microseconds) in merges[name].items():
            print(f"{'':12} {launches} x {kernel[:100]}: {microseconds:.1f} us")
        print_serving(name, one)
    wrong = [] if compared else ["compare reported nothing"]
    if not merges["mlafix"] or set(merges["mlafix"]) & set(merges["sglang"]):
        wrong.append("no merge was replaced, or some were not")
    if ours[0] > (options.allow if options.allow >= 0 else again[0] + 1):
        wrong.append(f"tokens differ in {ours[0]} requests")
    return wrong


def main() -> int:
    options = arguments()
    if options.run:
        run(options)
        return 0
    write(options.out / "model", "mla", options.heads)
    return run_all(options.out, RUNS, "MLAFIX_SGLANG", ENVIRONMENT, lambda results: summary(options, results))


if __name__ == "__main__":
    sys.exit(main())
