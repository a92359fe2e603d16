"""python all_proved.py MLAFIX_OPT KERNELS: fails where a question about a kernel of the library has another answer than "proved"."""
import json
import pathlib
import subprocess
import sys

BINDINGS = {"H": "16", "D": "128", "T": "bf16", "O": "bf16", "I": "i64"}


def report(opt, path, *options):
    done = subprocess.run([opt, path, "--emit=report", *options], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def names(opt, path):
    done = subprocess.run([opt, path, "--emit=signature"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["names"]


def main():
    opt, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    paths = sorted(folder.glob("*.mlir")) + sorted(folder.glob("examples/*.mlir"))
    asked, lost = 0, []
    for path in paths:
        bound = ",".join(f"{name}={BINDINGS[name]}" for name in names(opt, path) if name in BINDINGS)
        for options in ([], [f"--specialize={bound}"] if bound else []):
            for argument in report(opt, path, *options)["args"]:
                for answer in argument["answers"]:
                    asked += 1
                    if answer["verdict"] != "proved":
                        lost.append(f"{path.name}: {' '.join(options)} {argument['name']}: {answer}")
    print("\n".join(lost))
    print(f"{len(paths)} kernels, {asked} answers, {len(lost)} of them not proved")
    return 1 if lost or len(paths) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
