"""Makes one small change at a time to the library's kernels, and asks the compiler's proofs about each mutant.

    python test/fuzz/mutants MLAFIX_OPT [--jobs N] [--sizes N] [--list] [KERNEL.mlir...]

All properties of a library kernel are proved or promised. A mutant is accepted if all its properties still are. An
accepted mutant must be right in all small launches, which `mlafix-prove=exhaustive=N` enumerates without the proofs.
Prints how many mutants of each kind were refuted, left unknown or accepted. Fails if a run contradicts a proof, or if
an unchanged kernel is not proved.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys

import edits

ROOT = pathlib.Path(__file__).resolve().parents[3]
ANSWER = re.compile(r": remark: (\w+): ([a-z ]+): (proved|promised|unknown|refuted)\b")
FAILURE = re.compile(r": (?:remark|error): (\w+): ([a-z ]+): fails for ")


class Result:
    """The answers of mlafix-opt about one source. `answers` maps (argument, question) to the verdict. `failures` has
    the pairs (argument, question) that fail in an enumerated launch."""

    def __init__(self, opt, source, sizes):
        command = [opt, "-", "--mlafix-define-edge-cases", "--canonicalize", f"--mlafix-prove=exhaustive={sizes}", "-o", "/dev/null"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=300)
        self.text = done.stderr
        self.answers = {(argument, question): verdict for argument, question, verdict in ANSWER.findall(done.stderr)}
        self.failures = set(FAILURE.findall(done.stderr))
        self.is_kernel = bool(self.answers)

    def verdict(self):
        """Returns the worst verdict: "refuted", "unknown", or "accepted" if all are proved or promised."""
        return next((word for word in ("refuted", "unknown") if word in self.answers.values()), "accepted")


def check(opt, sizes, mutant):
    """Returns the mutant, its verdict (None if the verifier refuses the mutant), and a text. If an enumerated launch
    contradicts a proof, the text is the output of mlafix-opt. Otherwise it is empty."""
    result = Result(opt, mutant.source, sizes)
    if not result.is_kernel:
        return mutant, None, ""
    wrong = [key for key in result.failures if result.answers.get(key) in ("proved", None)]
    return mutant, result.verdict(), result.text if wrong else ""


def print_table(counts):
    print(f"{'kind':22}{'mutants':>9}{'refuted':>9}{'unknown':>9}{'accepted':>10}")
    total = collections.Counter()
    for kind in sorted(counts):
        row = counts[kind]
        total.update(row)
        print(f"{kind:22}{sum(row.values()):9}{row['refuted']:9}{row['unknown']:9}{row['accepted']:10}")
    print(f"{'all':22}{sum(total.values()):9}{total['refuted']:9}{total['unknown']:9}{total['accepted']:10}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("opt")
    parser.add_argument("kernels", nargs="*", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sizes", type=int, default=2, help="the largest size of the launches that are run")
    parser.add_argument("--list", action="store_true", help="print every mutant that is accepted")
    options = parser.parse_args()
    kernels = options.kernels or sorted((ROOT / "kernels").glob("*.mlir")) + sorted((ROOT / "kernels/examples").glob("*.mlir"))
    counts = collections.defaultdict(collections.Counter)
    status = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path in kernels:
            source = path.read_text()
            before = Result(options.opt, source, options.sizes)
            if not before.is_kernel or set(before.answers.values()) - {"proved", "promised"}:
                print(f"{path.name}: expected all answers to be proved, got\n{before.text}", file=sys.stderr)
                status = 1
            tasks = [pool.submit(check, options.opt, options.sizes, mutant) for mutant in edits.mutate(source)]
            for task in tasks:
                mutant, verdict, contradiction = task.result()
                if contradiction:
                    print(f"{path.name}: {mutant.what}: proved, but a run fails\n{contradiction}", file=sys.stderr)
                    status = 1
                if verdict:
                    counts[mutant.kind][verdict] += 1
                if verdict == "accepted" and options.list:
                    print(f"{path.name}: {mutant.kind}: {mutant.what}")
    print_table(counts)
    return status


if __name__ == "__main__":
    sys.exit(main())
