"""Runs the engines' own tests on the drop-ins of `mlafix.compat`.

    python test/peers --vllm DIR --sglang DIR --flashinfer DIR --flash-attention DIR --cache-dit DIR --tensorrt-llm DIR
                      [--json FILE] [--markdown FILE]
    python test/peers --from FILE [--from FILE ...] --markdown FILE

The second command runs no tests. It writes the table of one or several earlier runs.

Each DIR is a checkout of an engine; only engines with a DIR are tested. No engine is built; only its Python files are
read. The version in the results comes from the file VERSION_OF_CHECKOUT in DIR, or from git if there is no such file.
The tests need a CUDA device, torch, Triton and pytest. With --on-cpu they run slowly on the CPU, with Triton's
interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from peer_report import fill, table
from peer_suites import ENGINES, SUITES, Suite

HERE = Path(__file__).resolve().parent
OUTCOMES = ("passed", "failed", "skipped", "faults")  # "faults" counts the failures that the engine's own function also has


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="test/peers", description="Runs the engines' own tests over mlafix.compat.")
    for engine in ENGINES:
        parser.add_argument(f"--{engine}", type=Path, action="append", default=[], metavar="DIR", help="a checkout; may be given again")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--markdown", type=Path, help="a page whose table is filled in")
    parser.add_argument("--from", dest="results", type=Path, action="append", help="results of an earlier run; runs nothing")
    parser.add_argument("--every", type=int, default=1, help="run every Nth case of each file")
    parser.add_argument("--jobs", type=int, default=8, help="processes at once")
    parser.add_argument("--memory", type=int, default=120, help="GiB of GPU memory that they share")
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for a file, after which it counts as failed")
    parser.add_argument("--on-cpu", action="store_true")
    return parser.parse_args()


def version(checkout: Path) -> str:
    """Returns the version in a checkout's file VERSION_OF_CHECKOUT. Without this file, returns the git commit, or
    "unknown" if the checkout is no git repository."""
    named = checkout / "VERSION_OF_CHECKOUT"
    if named.is_file():
        return named.read_text(encoding="utf-8").strip()
    if not (checkout / ".git").exists():
        return "unknown"
    asked = subprocess.run(["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else "unknown"


def test_file(suite: Suite, checkout: Path) -> Path | None:
    for pattern in suite.files:
        for path in sorted(checkout.glob(pattern)):
            return path
    return None


def run_share(suite: Suite, checkout: Path, file: Path, share: str, options: argparse.Namespace, record: Path) -> dict[str, Any]:
    """Runs pytest in one process on the cases of a file that belong to `share` ("index/count")."""
    selected = [f"{file}::{test}" for test in suite.tests] or [str(file)]
    # Makes the paths absolute, since pytest runs in the checkout and not in this process's folder.
    inherited = [Path(folder).resolve() for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    folders = [HERE, *(checkout / folder for folder in suite.path), checkout, *inherited]
    environment = {**os.environ, "PEER_SHIM": suite.shim, "PEER_CHECKOUT": str(checkout), "PEER_SHARE": share, "PEER_RECORD": str(record),
                   "PEER_FAULTS": json.dumps(dict(suite.faults)), "PEER_ERRORS": json.dumps(dict(suite.errors)),
                   "PYTHONPATH": os.pathsep.join(map(str, folders))}
    if options.on_cpu:
        environment.update(PEER_ON_CPU="1", TRITON_INTERPRET="1")
    # pytest imports the packages between the rootdir and the test file, and must not import the engine's. So the
    # rootdir is the test file's folder, with no packages in between.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "peer_plugin", "--noconftest", "-c", os.devnull,
               "--rootdir", str(file.parent), "--import-mode=importlib", "--tb=short", "-rN", *selected]
    try:
        done = subprocess.run(command, env=environment, cwd=checkout, timeout=options.timeout, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        said = done.stdout
    except subprocess.TimeoutExpired as late:
        said = f"no end after {late.timeout:.0f} s"
    if record.is_file():
        made: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return made
    last = (said.strip().splitlines() or ["pytest said nothing"])[-1]
    return {"outcomes": {key: 0 for key in OUTCOMES}, "reasons": {"failed": {}, "skipped": {}},
            "collection_errors": [f"pytest ended without results: {last}"], "exit_status": 1}


def run_suite(suite: Suite, checkout: Path, options: argparse.Namespace) -> dict[str, Any] | None:
    """Runs the cases of a file (with --every E, every Eth), in as many processes as fit into the GPU's memory."""
    file = test_file(suite, checkout)
    if file is None or options.only not in str(file):
        return None
    processes = max(1, min(options.jobs, options.memory // suite.gibibytes))
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        # Of P processes, process i runs the cases i * E, i * E + P * E, i * E + 2 * P * E, ..., where E is --every.
        shares = [f"{index * options.every}/{processes * options.every}" for index in range(processes)]
        parts = list(pool.map(lambda at: run_share(suite, checkout, file, shares[at], options, Path(folder) / f"{at}.json"),
                              range(processes)))
    outcomes: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {"failed": Counter(), "skipped": Counter()}
    for part in parts:
        outcomes.update(part["outcomes"])
        for outcome, counter in reasons.items():
            counter.update(part["reasons"][outcome])
    return {"engine": suite.engine, "version": version(checkout), "file": str(file.relative_to(checkout)), "tests": list(suite.tests),
            "every": options.every, "outcomes": {key: outcomes[key] for key in OUTCOMES},
            "reasons": {key: dict(counter) for key, counter in reasons.items()}, "seconds": round(time.monotonic() - begin, 1),
            "collection_errors": sorted({error for part in parts for error in part["collection_errors"]})}


def machine(on_cpu: bool) -> dict[str, str]:
    if on_cpu:  # avoids importing torch and Triton, which would take seconds
        return {"device": "the CPU, Triton interpreted", "torch": metadata.version("torch"), "triton": metadata.version("triton")}
    import torch
    import triton

    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    suites = []
    for suite in SUITES:
        for checkout in getattr(options, suite.engine.replace("-", "_")):
            done = run_suite(suite, checkout.resolve(), options)
            if done is None:
                continue
            suites.append(done)
            counts = ", ".join(f"{count} {outcome}" for outcome, count in done["outcomes"].items())
            print(f"{done['engine']} {done['file']}: {counts} ({done['seconds']} s)", flush=True)
            for outcome, reasons in done["reasons"].items():
                for reason, count in reasons.items():
                    print(f"  {count} {outcome}: {reason}", flush=True)
            for error in done["collection_errors"]:
                print(f"  not collected: {error}", flush=True)
    if not suites:
        raise SystemExit("expected checkouts with tests to run, got none")
    return [{"machine": machine(options.on_cpu), "suites": suites}]


def joined(files: list[Path]) -> list[dict[str, Any]]:
    """Reads the results of several runs, and groups them by machine."""
    machines: list[dict[str, Any]] = []
    for other in [run for file in files for run in json.loads(file.read_text(encoding="utf-8"))]:
        same = [one for one in machines if one["machine"] == other["machine"]]
        if same:
            same[0]["suites"] += other["suites"]
        else:
            machines.append(other)
    return machines


def main() -> int:
    options = arguments()
    results = joined(options.results) if options.results else run(options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(fill(options.markdown.read_text(encoding="utf-8"), results), encoding="utf-8")
    else:
        print(table(results))
    suites = [suite for run in results for suite in run["suites"]]
    return int(any(suite["outcomes"]["failed"] > suite["outcomes"]["faults"] or suite["collection_errors"] for suite in suites))


if __name__ == "__main__":
    sys.exit(main())
