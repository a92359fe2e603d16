"""Compares random kernels with an interpreter. See README.md.

    python test/fuzz/kernels --seed 17              one kernel, with its source and what is wrong
    python test/fuzz/kernels --seeds 0:20000 --jobs 2
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import workers


def _seeds(text: str) -> Sequence[int]:
    first, colon, last = text.partition(":")
    if colon:
        return range(int(first), int(last))
    return [int(seed) for seed in (text.split(",") if "," in text else Path(text).read_text().split())]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--seeds", type=_seeds, help="FIRST:LAST, the last one left out; some, with commas between; or a file of --cover")
    parser.add_argument("--cover", type=Path, metavar="FILE", help="write to FILE a few of the seeds whose kernels together have every word, and run nothing")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--device", default="cpu", help="cpu; torch: torch tensors there; ptx: GPU code without a GPU; cuda:0; with --power also interpreter")
    parser.add_argument("--target", default="", help="compile for targets such as sm_90,sm_120, and run nothing")
    parser.add_argument("--seconds", type=float, help="start no kernel after so many")
    parser.add_argument("--text", type=int, default=4, help="one kernel of so many also runs from its text in MLIR's syntax; 0: none")
    parser.add_argument("--calls", type=int, default=4, help="of each kernel's four calls make so many, which depends on the seed: most time goes into compiling for their sizes")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one kernel")
    parser.add_argument("--shrink", action="store_true", help="make failing kernels small: one of each kind")
    parser.add_argument("--save", type=Path, help="a folder for failing kernels")
    parser.add_argument("--plant", help="spoil one operation of each kernel's source: which (see plant.py); with --power several, between commas")
    parser.add_argument("--power", type=int, help="plant each kind of fault in so many kernels: a table of those that are seen")
    parser.add_argument("--list", action="store_true", help="print the source of --seed, and run nothing")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _show(options: argparse.Namespace) -> None:
    from generate import generate
    from render import listing

    print(listing(generate(options.seed)))


def _late(options: argparse.Namespace) -> Callable[[], bool]:
    """Returns a function that is true from --seconds after this call on."""
    begin = time.monotonic()
    return lambda: options.seconds is not None and time.monotonic() - begin > options.seconds


def _many(options: argparse.Namespace) -> int:
    from report import FINE, Report

    begin, late, report = time.monotonic(), _late(options), Report()
    seeds = options.seeds if options.seeds is not None else [options.seed]
    jobs = ({"seed": seed, **({"plant": options.plant} if options.plant else {})} for seed in seeds)
    done = 0
    for answer in workers.run(jobs, min(options.jobs, len(seeds)), options.device, options.text, late, options.limit, options.target, options.calls):
        if answer["kind"] == "absent":
            continue
        report.add(answer)
        done += 1
        if answer["kind"] not in FINE:
            print(f"seed {answer['seed']}: {answer['kind']}\n{answer['message']}\n", flush=True)
            if options.save:
                _save(options, answer)
        if done % 1000 == 0:
            print(f"... {done} kernels, {report.failures} failures, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    if options.shrink:
        from shrink import shrink_all

        shrink_all(report, options)
    if len(seeds) > 1:
        print(report.coverage())
    print(report.text())
    if done < len(seeds) and not options.plant:
        print(f"stopped after {done} of {len(seeds)} seeds")
    print(f"{time.monotonic() - begin:.0f} s on {options.target or options.device} with {options.jobs} jobs")
    if options.seed is not None and len(seeds) == 1:
        _show(options)
    return 1 if report.failures else 0


def _power(options: argparse.Namespace) -> int:
    import plant
    from power import measure

    kinds = options.plant.split(",") if options.plant else plant.KINDS
    first = {} if options.seeds is None else {"first": options.seeds[0]}
    print(measure(options.power, kinds, options.jobs, options.device, _late(options), options.limit, **first).table())
    return 0


def _cover(seeds: Sequence[int]) -> list[int]:
    """Returns a few of `seeds` whose kernels together contain every word of the language. Prefers seeds of small
    kernels."""
    from generate import generate
    from words import WORDS, words

    cases, found, missing = {}, {}, set(WORDS)
    for seed in itertools.takewhile(lambda _: missing, seeds):
        cases[seed] = generate(seed)
        found[seed] = words(cases[seed])
        missing -= found[seed]
    if missing:
        sys.exit(f"expected seeds whose kernels have every word, got none with {', '.join(sorted(missing))}")
    size = {seed: 60 + sum(1 for _ in case.kernel.nodes()) for seed, case in cases.items()}  # 60 stands for the fixed cost of a kernel, in nodes
    missing = set(WORDS)
    kept: list[int] = []
    while missing:
        kept.append(max(cases, key=lambda seed: len(found[seed] & missing) / size[seed]))
        missing -= found[kept[-1]]
    for seed in sorted(kept, key=size.__getitem__, reverse=True):  # drops those whose words later choices have, too
        others = [one for one in kept if one != seed]
        if set(WORDS) <= set().union(*(found[one] for one in others)):
            kept = others
    return kept


def _save(options: argparse.Namespace, answer: dict) -> None:
    from generate import generate
    from render import listing
    from report import save

    title = f"Seed {answer['seed']} on {options.device}: {answer['kind']}\n\n{answer['message']}"
    save(options.save / f"seed_{answer['seed']}.py", title, listing(generate(answer["seed"])))


def main() -> int:
    options = _arguments()
    if options.worker:
        workers.work(options.device, options.text, options.worker, options.target, options.calls)
        return 0
    os.environ["MLAFIX_CACHE"] = "0"
    if options.cover:
        options.cover.write_text("".join(f"{seed}\n" for seed in _cover(options.seeds)))
        return 0
    if options.list:
        _show(options)
        return 0
    if options.power:
        return _power(options)
    if options.seed is None and options.seeds is None:
        print("expected --seed or --seeds, got none", file=sys.stderr)
        return 2
    return _many(options)


if __name__ == "__main__":
    sys.exit(main())
