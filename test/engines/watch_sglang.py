"""Tests the watch in SGLang: it must name faults that are injected into the running engine, and must not report clean steps.

    python test/engines/watch_sglang.py --out FOLDER [--model mla|gqa] [--backends fa3 triton]

README.md beside this file explains the output. SGLang runs the model in a separate process, where this file is a
plugin. The plugin reads orders from a file. It injects faults into the engine's functions below the watch, and records
the step and the request of each fault.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import models
from run_sglang import ENVIRONMENT, engine, flush, said, sampling
from run_vllm import run_all, wait_until
from watch_vllm import ids, wrapped

LAYER = 1
CAPACITY = int(ENVIRONMENT["SGLANG_MAX_KV_CHUNK_CAPACITY"])


class Fault(NamedTuple):
    """A fault, described by the expected contents of the first report."""

    seam: str
    name: str
    fault: str


KVCACHE, VARLEN = "flash_attn_with_kvcache", "flash_attn_varlen_func"
FAULTS = {
    "fa3": {
        "rows": Fault("attention", KVCACHE, "NaN"),
        "scale": Fault("attention", f"{KVCACHE}, recomputed", "another value"),
        "page": Fault("cache", "kv_cache", "NaN in a block"),
        "stale": Fault("attention", VARLEN, "not empty"),
        "merge": Fault("merge", "merge_state_v2", "another value"),
    },
    "triton": {"rows": Fault("attention", "TritonAttnBackend.forward", "NaN"), "page": Fault("attention", "TritonAttnBackend.forward", "NaN")},
    "flashinfer": {"rows": Fault("attention", "FlashInferAttnBackend.forward", "NaN"), "page": Fault("attention", "FlashInferAttnBackend.forward", "NaN")},
}
"""The faults of each backend. "rows", "scale" and "page" affect request 1 in a decode. "stale" and "merge" are in a
prefill whose contexts are chunked."""
CONTEXTS = ("stale", "merge")
BAD = {"rows": float("nan"), "scale": 1.5}


# -- In the process that runs the model --------------------------------------------------------------------------------


class State:
    """The current order of the client, and the engine's progress."""

    def __init__(self) -> None:
        self.file = Path(os.environ.get("MLAFIX_TEST_ORDER", "order.json"))
        self.order: dict[str, Any] = {}
        self.is_done, self.is_on, self.layer, self.flash_calls = True, False, -1, 0
        self.batch: Any = None
        self.step = 0

    def begin_step(self, step: int, batch: Any) -> None:
        order = json.loads(self.file.read_text(encoding="utf-8"))
        if order != self.order:
            self.order, self.is_done = order, False
        self.step, self.batch = step, batch
        if order["name"] == "steps" and not self.is_done:
            self.done(None)
        is_decode = batch.forward_mode.is_decode()
        in_chunks = not is_decode and any(batch.extend_prefix_lens_cpu or ()) and sum(batch.seq_lens_cpu.tolist()) > CAPACITY
        self.is_on = not self.is_done and (in_chunks if order["name"] in CONTEXTS else is_decode and batch.batch_size > 1)

    def does(self, name: str) -> bool:
        return self.is_on and self.order["name"] == name and self.layer == LAYER

    def done(self, index: int | None) -> None:
        """Writes the step and the request (None: no request) of the injected fault to a file."""
        self.is_done = True
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({"order": self.order, "step": self.step, "request": "" if index is None else self.batch.rids[index]}), encoding="utf-8")
        new.rename(self.file.with_suffix(".done"))


state: State


def around_step(own: Any, given: dict[str, Any]) -> Any:
    from mlafix.watch import engines

    watch = engines.watches["sglang"]
    watch.sample = 1
    if not given["forward_batch"].forward_mode.is_idle():
        state.begin_step(watch.now, given["forward_batch"])
    return own()


def around_layer(own: Any, given: dict[str, Any]) -> Any:
    """Records the number of the current layer. For the fault "page", puts NaN in the first page of request 1, and
    repairs the page after the layer. For the fault "rows", multiplies the rows of request 1 by NaN, unless the backend
    calls a wrapped function of FlashAttention, where `around_pages` does so."""
    state.layer, calls = given["layer"].layer_id, state.flash_calls
    backend, batch = given["self"], given["forward_batch"]
    if not state.does("page"):
        result = own()
        if state.flash_calls == calls and state.does("rows"):
            result[1].mul_(BAD["rows"])
            state.done(1)
        return result
    table = backend.req_to_token if hasattr(backend, "req_to_token") else backend.req_to_token_pool.req_to_token
    slot = table[batch.req_pool_indices[1], :1].long()
    cache = backend.token_to_kv_pool.get_key_buffer(LAYER)
    kept = cache[slot].clone()
    cache[slot] = float("nan")
    result = own()
    cache[slot] = kept
    state.done(1)
    return result


def around_pages(own: Any, given: dict[str, Any]) -> Any:
    """For the faults "rows" and "scale", multiplies the rows of request 1 in a decode by the fault's factor."""
    state.flash_calls += 1
    result = own()
    name = next((name for name in BAD if state.does(name)), "")
    if name:
        (result[0] if isinstance(result, (tuple, list)) else result)[1].mul_(BAD[name])
        state.done(1)
    return result


def around_varlen(own: Any, given: dict[str, Any]) -> Any:
    """For the fault "stale", overwrites the rows of a request that has no keys in a chunk, as if another request had
    left its rows there."""
    state.flash_calls += 1
    result = own()
    if state.does("stale") and not given.get("causal"):
        empty = (given["cu_seqlens_k"].diff() == 0).nonzero().flatten().tolist()
        if empty:
            begin, end = given["cu_seqlens_q"][empty[0] : empty[0] + 2].tolist()
            result[0][begin:end], result[1][:, begin:end] = 1, 0
            state.done(empty[0])
            state.is_on = False
    return result


def around_merge(own: Any, given: dict[str, Any]) -> Any:
    result = own()
    if state.does("merge"):
        result[0][:1].mul_(1.5)
        state.done(0)
        state.is_on = False
    return result


def spoil() -> None:
    """The entry point of the plugin. It wraps the engine's functions before the watch installs its hooks."""
    global state
    if os.environ.get("MLAFIX_TEST_ORDER") is None:
        return
    state = State()
    import sgl_kernel
    from mlafix.engines.switch import rebind
    from sglang.kernels.ops.attention import flash_attention
    from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
    from sglang.srt.model_executor.model_runner import ModelRunner

    wrapped(ModelRunner, "forward", around_step)
    wrapped(AttentionBackend, "forward", around_layer)
    for holder, name, around in ((flash_attention, KVCACHE, around_pages), (flash_attention, VARLEN, around_varlen), (sgl_kernel, "merge_state_v2", around_merge)):
        own = getattr(holder, name)
        wrapped(holder, name, around)
        rebind(own, getattr(holder, name))


# -- One run --------------------------------------------------------------------------------------------------------------


class Client:
    """Gives orders to the model's process. Reads the files that the plugin and the watch write in that process."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.order, self.reports = options.out / f"{options.run}.order", options.out / f"{options.run}.jsonl"
        self.serial = self.read = 0
        os.environ.update(MLAFIX_TEST_ORDER=str(self.order), MLAFIX_WATCH_REPORT=str(self.reports))
        self.reports.write_text("", encoding="utf-8")
        self.give("nothing")
        self.server = engine(options, 40 + list(FAULTS).index(options.run), attention_backend=options.run)

    def give(self, name: str) -> None:
        self.serial += 1
        new = self.order.with_suffix(".give")
        new.write_text(json.dumps({"serial": self.serial, "name": name}), encoding="utf-8")
        new.rename(self.order)
        self.order.with_suffix(".done").unlink(missing_ok=True)

    def done(self) -> dict[str, Any] | None:
        file = self.order.with_suffix(".done")
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def generate(self, prompts: list[list[int]], tokens: int) -> None:
        self.server.generate(input_ids=prompts, sampling_params=sampling(tokens), rid=[f"r{self.serial}-{at}-{time.monotonic_ns()}" for at in range(len(prompts))])

    def found(self, seconds: float) -> list[dict[str, Any]]:
        """Waits until there is a report or `seconds` have passed. Returns the reports since the last call. Runs further
        requests meanwhile, since the watch writes a report one or two steps after the fault."""

        def lines() -> list[str]:
            self.generate([ids(30, 5)], 3)
            return self.reports.read_text(encoding="utf-8").splitlines()[self.read :]

        new = wait_until(lines, seconds, 0)
        self.read += len(new)
        return [json.loads(line) for line in new]

    def step(self) -> int:
        """Returns the number of the watch's current step."""
        self.give("steps")
        self.generate([ids(30, 5)], 1)
        done = self.done()
        assert done is not None
        return int(done["step"])


def line_of(record: dict[str, Any]) -> str:
    from mlafix.watch.report import Report

    return f"      {Report(record).line}"


def run_fault(client: Client, name: str, want: Fault) -> tuple[bool, list[str]]:
    """Runs a few requests with one fault. Returns True if the first report is the expected one, and messages."""
    flush(client.server)
    prompts = [ids(count, 10 + count) for count in (40, 41, 42, 43)]
    if name in CONTEXTS:
        shared = ids(1536, 1)
        client.generate([shared], 1)
        prompts = [ids(900, 2), shared + ids(20, 3), shared[:64] + ids(30, 4), shared + ids(33, 6)]
    client.give(name)
    client.generate(prompts, 8)
    reports, done = client.found(3), client.done()
    first = min(reports, key=lambda one: one["step"]) if reports else None
    expected = (*want, str(LAYER), done["step"], done["request"]) if done else None
    got = first and (first["seam"], first["name"], first["class"], first["layer"], first["step"], first["request"])
    is_right = got is not None and got == expected
    lines = [f"{'ok   ' if is_right else 'WRONG'} {name}: expected {expected}, got {got}", *map(line_of, reports[:2])]
    client.give("nothing")
    flush(client.server)
    client.found(0.5)
    return is_right, lines


def run_clean(client: Client, seconds: float) -> tuple[bool, list[str]]:
    """Runs requests of many lengths until time is up, some with a shared prefix. Returns True if there was no report,
    and messages."""
    import torch

    draw, shared = torch.Generator().manual_seed(3), ids(1536, 1)
    begin, count, until = client.step(), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        lengths = torch.randint(1, 400, (24,), generator=draw).tolist()
        prompts = [(shared[: 512 * (at % 4)] if at % 2 else []) + ids(length, 100 * count + at) for at, length in enumerate(lengths)]
        client.generate(prompts, 60)
        count += len(prompts)
    steps, reports = client.step() - begin, client.found(0.5)
    return not reports, [f"{'WRONG' if reports else 'ok   '} clean: {steps} steps, {count} requests, {len(reports)} reports", *map(line_of, reports[:3])]


def run(options: argparse.Namespace) -> None:
    client = Client(options)
    faults = FAULTS[options.run]
    results = [run_fault(client, name, want) for name, want in faults.items() if options.model == "mla" or name not in CONTEXTS]
    results.append(run_clean(client, options.seconds))
    lines = [line for _, made in results for line in made]
    gone = [line for line in said(options, options.run) if "not watched any more" in line or "the watch failed" in line]
    lines += gone
    is_right = all(right for right, _ in results) and not gone
    (options.out / f"{options.run}.json").write_text(json.dumps({"is right": is_right, "lines": lines}, indent=1), encoding="utf-8")
    client.server.shutdown()


# -- All runs -------------------------------------------------------------------------------------------------------------


def write_plugin(folder: Path) -> None:
    """Writes the files that register the plugin with SGLang."""
    made = folder / "mlafix_test_faults-1.dist-info"
    made.mkdir(parents=True, exist_ok=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: mlafix-test-faults\nVersion: 1\n", encoding="utf-8")
    (made / "entry_points.txt").write_text("[sglang.srt.plugins]\nfaults = watch_sglang:spoil\n", encoding="utf-8")


def summary(results: dict[str, Any]) -> list[str]:
    """Prints the findings of the runs. Returns the errors."""
    for backend, result in results.items():
        print(f"{backend}:", *result["lines"], sep="\n")
    return [f"{backend}: the watch said anything else than expected" for backend, result in results.items() if not result["is right"]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="watch_sglang.py", description="The watch in SGLang, on a small random model.")
    parser.add_argument("--model", choices=("mla", "gqa"), default="mla")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--backends", nargs="+", choices=FAULTS, default=["fa3"], help="of attention, each in an engine of its own")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--memory", type=float, default=0.5, help="part of the GPU's memory that SGLang may take")
    parser.add_argument("--seconds", type=float, default=20, help="of clean steps")
    parser.add_argument("--run", choices=FAULTS, help=argparse.SUPPRESS)  # runs one of FAULTS in its own process
    options = parser.parse_args()
    if options.run:
        run(options)
        return 0
    options.out = options.out.resolve()
    models.write(options.out / "model", options.model, options.heads)
    write_plugin(options.out / "plugin")
    paths = [str(options.out / "plugin"), str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")]
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    return run_all(options.out, dict.fromkeys(options.backends, "1"), "MLAFIX_WATCH", environment, summary)


if __name__ == "__main__":
    sys.exit(main())
