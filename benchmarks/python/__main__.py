#!/usr/bin/env python3
"""Compares mlafix's Python functions with Triton, torch and engines, in torch's CUDA graphs, on the shapes of mlafix-bench.

    python3 benchmarks/python [--device cuda:0|cpu] [--case REGEX] [--json FILE] [--rounds N] [--rotate MIB] [--quick]

Needs the mlafix package and torch. Triton, vLLM, sgl-kernel, FlashInfer and FlashAttention are measured if they can be imported. The JSON has the
form that docs/Benchmark.md describes. The exit code is 1 if a result of ours is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import engine_baselines  # noqa: E402
import torch  # noqa: E402
import torch_baselines  # noqa: E402
from cases import all_cases  # noqa: E402
from measure import Call, Settings, as_json, first_line, forget_failed_launch, measure  # noqa: E402
from ours import OURS, host_times  # noqa: E402
from work import Case, Prepare, Tensors, Unavailable  # noqa: E402

import mlafix  # noqa: E402


def triton_baselines_of(group: str) -> dict[str, Prepare]:
    """Returns the Triton baselines of a group. The result is empty without Triton."""
    try:
        import triton_baselines
    except ImportError:
        return {}
    return triton_baselines.baselines_of(group)


def implementations_of(group: str, is_cuda: bool) -> dict[str, Prepare]:
    """Returns the implementations by name, mlafix first. On a CPU, omits Triton and engines, which have no CPU kernels,
    and torch.compile, which needs a C++ compiler."""
    baselines = torch_baselines.baselines_of(group)
    if not is_cuda:
        return {"mlafix": OURS[group], **{name: prepare for name, prepare in baselines.items() if name == "torch"}}
    return {"mlafix": OURS[group], **triton_baselines_of(group), **baselines, **engine_baselines.baselines_of(group)}


def size_of(tensors: Tensors) -> int:
    """Returns the total size of tensors in bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def check(case: Case, settings: Settings, prepare: Prepare) -> str:
    """Runs an implementation once. Returns a sentence about its result if that is wrong, else "". Raises Unavailable if
    it cannot run."""
    before = case.make(torch.Generator(settings.device).manual_seed(0), settings.device)
    after = {name: tensor.clone() for name, tensor in before.items()}
    prepare(after)()
    settings.synchronize()
    if "lse_base_2" in after:
        after["out_lse"] = after["lse_base_2"] * 0.6931471805599453
    try:
        case.check(before, after)
    except AssertionError as error:
        return str(error)
    return ""


def measure_case(case: Case, settings: Settings) -> dict[str, Any]:
    """Measures a case and returns its entry in the JSON."""
    generator = torch.Generator(settings.device).manual_seed(1)
    first = case.make(generator, settings.device)
    sets = [first]
    while len(sets) < 2 or len(sets) * size_of(first) < settings.rotate:
        sets.append(case.make(generator, settings.device))
    entries: dict[str, dict[str, Any]] = {}
    ready: dict[str, list[Call]] = {}
    for name, prepare in implementations_of(case.name.split("/")[0], settings.is_cuda).items():
        entry: dict[str, Any] = {"name": name, "rival": name != "mlafix", "dependent": False, "launches": 1}
        try:
            wrong = check(case, settings, prepare)
            if not wrong:
                ready[name] = [prepare(dict(tensors)) for tensors in sets]
        except Unavailable as error:
            print(f"  {name:<16} skipped: {error}")
            continue
        except Exception as error:  # baselines may fail in any way, but mlafix must not
            if name == "mlafix":
                raise
            entries[name] = {**entry, "against": "mlafix", "failed": f"{type(error).__name__}: {first_line(error)}"}
            forget_failed_launch(settings.device)
            continue
        if name != "mlafix":
            entry["against"] = "mlafix"
        if wrong:
            entry["wrong"] = wrong
        entries[name] = entry
    times = measure(settings, ready, "mlafix")
    for name, micros in times.items():
        entries[name]["us"] = micros
        entries[name]["gbps"] = round((case.read + case.written) / micros["median"] * 1e-3, 4)
    for name in ready.keys() - times.keys():
        del entries[name]
    return {"name": case.name, "bytes": {"read": case.read, "written": case.written}, "sets": len(sets),
            "rotated_bytes": len(sets) * size_of(first), "contenders": list(entries.values())}


def print_case(entry: dict[str, Any]) -> None:
    """Prints the lines of a case in the table."""
    print(f"{entry['name']}  ({(entry['bytes']['read'] + entry['bytes']['written']) / 1e6:.1f} MB, {entry['sets']} sets)")
    ours = next((c["us"]["median"] for c in entry["contenders"] if c["name"] == "mlafix" and "us" in c), None)
    for implementation in entry["contenders"]:
        if "wrong" in implementation:
            print(f"  {implementation['name']:<16} WRONG: {implementation['wrong']}")
            continue
        if "failed" in implementation:
            print(f"  {implementation['name']:<16} FAILED: {implementation['failed']}")
            continue
        us = implementation["us"]
        times = f"  x {us['median'] / ours:.3f} of mlafix" if ours and implementation["rival"] else ""
        print(f"  {implementation['name']:<16}{us['median']:10.2f}  [{us['p10']:.2f} - {us['p90']:.2f}]  {implementation['gbps']:.0f} GB/s{times}",
              flush=True)


def last_cache(device: torch.device) -> int:
    """Returns the size of the last-level cache in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return int(size.read_text().strip().removesuffix("K")) << 10 if size.exists() else 32 << 20


def versions() -> str:
    """Returns the versions of the compared packages as text."""
    found = [f"torch {torch.__version__}"]
    for name in ("triton", "vllm", "sgl_kernel", "sglang", "flashinfer", "flash_attn", "flash_attn_interface"):
        try:
            found.append(f"{name} {__import__(name).__version__}")
        except (ImportError, AttributeError, OSError, RuntimeError):
            continue
    return ", ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--case", default="", help="only cases whose name holds a match")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--rotate", type=int, help="MiB that the buffers of a case cover at least")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error(f"--device: expected a GPU that torch can use for '{options.device}', found none")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    cache = last_cache(device)
    settings = Settings(device, options.rounds or (9 if options.quick else 31), 300 if options.quick else 1000,
                        options.rotate << 20 if options.rotate else 3 * cache)
    cases = [case for case in all_cases() if re.search(options.case, case.name)]
    with_host = not options.case or re.search(options.case, "host")
    if not cases and not with_host:
        parser.error(f"--case: expected to match a case, got '{options.case}'")
    entries = []
    for case in cases:
        entries.append(measure_case(case, settings))
        print_case(entries[-1])
    host = []
    if with_host:
        host = host_times(settings, {name: prepare for name, prepare in implementations_of("merge", settings.is_cuda).items()
                                     if name in ("triton", "torch")})
    for entry in host:
        print(f"host: {entry['name']:<36}{entry['us']['median']:10.2f}  [{entry['us']['p10']:.2f} - {entry['us']['p90']:.2f}]")
    if options.json:
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
        whole = {"schema": 1, "tool": f"mlafix-python {mlafix.__version__} ({versions()})", "device": options.device, "machine": name,
                 "cache_bytes": cache, "rounds": settings.rounds, "cases": entries, "host": host}
        options.json.write_text(as_json(whole) + "\n")
    return int(any("wrong" in c and not c["rival"] for entry in entries for c in entry["contenders"]))


if __name__ == "__main__":
    sys.exit(main())
