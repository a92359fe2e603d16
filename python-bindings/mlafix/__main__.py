"""The command line: ``python -m mlafix compile``, ``check``, ``explain``, ``warmup``, ``cache``, ``audit``,
``engines``, ``watch``, ``flashinfer-solutions``, ``hub-kernels``, ``info`` and ``cmake-dir``."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import json
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

from . import Kernel, _env, _runtime, cache, explain, library, warmup
from ._files import inventory, toolchain
from ._files.warmup import default_device
from ._reports import check as _check
from .engines import flashinfer, hub, report
from .errors import ArgumentError, Error, UnitError
from .watch import command as watch_command


def parse_bindings(text: str, option: str = "--bind") -> dict[str, str]:
    """Parses "H=128,T=bf16" into {"H": "128", "T": "bf16"}. Raises ArgumentError."""
    bound: dict[str, str] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not name or not equals or not value or name in bound:
            raise ArgumentError(f'{option}{": " if option else ""}expected NAME=VALUE,… with each name once, got "{text}"')
        bound[name] = value
    return bound


def find_kernel(text: str) -> Kernel:
    """Returns the kernel that a command line names: "file.py:kernel", "file.mlir", "file.mlir:kernel", or a library
    kernel.

    Raises:
        ArgumentError: there is no such file or kernel.
        CompileError: the file does not compile.
    """
    if text.isidentifier():
        with contextlib.suppress(ArgumentError):
            return library.kernel(text)
    file, colon, name = text.rpartition(":")
    if not colon:
        file, name = text, ""
    path = Path(file)
    if not path.is_file():
        if path.suffix in (".py", ".mlir"):
            raise ArgumentError(f'expected a file that exists, got "{file}"')
        near = difflib.get_close_matches(text, library.names(), 1)
        hint = f"did you mean {near[0]}?" if near else "python -m mlafix info lists them"
        raise ArgumentError(f'expected FILE.py:KERNEL, FILE.mlir or a kernel of the library, got "{text}"; {hint}')
    if path.suffix != ".py":
        return Kernel.load(path, name)
    kernels = _kernels_of(path)
    if not name and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name not in kernels:
        raise ArgumentError(f'expected {path}:KERNEL with one of its kernels ({", ".join(kernels) or "none"}), got "{text}"')
    return kernels[name]


def _kernels_of(path: Path) -> dict[str, Kernel]:
    """Imports a Python file and returns its kernels by name. The file can import modules from its folder, as when it is
    run. What the file prints goes to stderr."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"expected a Python file, got {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with contextlib.redirect_stdout(sys.stderr):
        spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if isinstance(value, Kernel)}


def _check_outputs(kernel: str, *outputs: str) -> None:
    """Raises ArgumentError if an output would overwrite the file of the kernel or unit that the command line names."""
    source = next((Path(text) for text in (kernel, kernel.rpartition(":")[0]) if text and Path(text).is_file()), None)
    for output in filter(None, outputs):
        if source is not None and Path(output).is_file() and source.samefile(output):
            raise ArgumentError(f'expected another file to write than the source, got "{output}"')


def _compile(options: argparse.Namespace) -> int:
    _check_outputs(options.kernel, options.output, options.depfile)
    kernel = find_kernel(options.kernel)
    choices = [parse_bindings(text) for text in options.bind]
    targets = [name for text in options.target for name in text.split(",") if name]
    to_stdout = options.output == "-"
    if options.emit == "unit" and not options.output:
        raise ArgumentError("expected a file for the unit (-o FILE), got none")
    number = f"{len(choices)} specialisations" if len(choices) > 1 else options.emit
    print(f"compiling {kernel.name}: {number}{' for ' if targets else ''}{', '.join(targets)}", file=sys.stderr)
    output = kernel._emit(
        options.emit,
        targets,
        *(choices or [{}]),
        assembler=options.assembler,
        ptxas=options.ptxas or _env.ptxas(),
        unit_name=options.name or Path(options.output).stem,
        launch=options.launch,
        line_info=options.line_info or _env.line_info(),
    )
    if options.emit not in ("signature", "source"):
        kernel._warn(choices[0] if choices else {})
    if options.depfile:
        Path(options.depfile).write_text(_dependencies(options))
    data = output.encode() if isinstance(output, str) else bytes(output)
    if to_stdout or not options.output:
        sys.stdout.buffer.write(data)
        return 0
    Path(options.output).write_bytes(data)
    print(f"wrote {options.output}, {len(data)} bytes", file=sys.stderr)
    return 0


def _check_kernels(options: argparse.Namespace) -> int:
    """Runs the command `check`. Returns 1 if a kernel has an error or a warning, else 0."""
    path = Path(options.kernel)
    kernels = list(_kernels_of(path).values()) if path.suffix == ".py" and path.is_file() else [find_kernel(options.kernel)]
    if not kernels:
        raise ArgumentError(f"expected a file with kernels, got none in {path}")
    bound = parse_bindings(options.bind) if options.bind else {}
    target = _runtime.device_target("cpu") if options.target == "cpu" else options.target or None
    found = [_check.check(kernel, bound, target) for kernel in kernels]
    is_clean = not any(one["errors"] or one["warnings"] for one in found)
    print(json.dumps({"clean": is_clean, "kernels": found}, indent=1) if options.json else "\n".join(map(_check.as_text, found)))
    return 0 if is_clean else 1


def _explain(options: argparse.Namespace) -> int:
    _check_outputs(options.kernel, options.output)
    sizes = [{name: _number(value) for name, value in parse_bindings(text, "--sizes").items()} for text in options.sizes]
    bound = parse_bindings(options.bind) if options.bind else {}
    target = _runtime.device_target("cpu") if options.target == "cpu" else options.target
    file, _, name = options.kernel.partition(".mlafix")
    if options.kernel.endswith(".mlafix") or name.startswith(":"):
        facts = explain.facts_of_unit(Path(file + ".mlafix"), name[1:], bound, target)
    else:
        facts = explain.facts_of_kernel(find_kernel(options.kernel), bound, target)
    page = explain.write_page(facts, sizes or [{}], options.bandwidth)
    Path(options.output).write_text(page, encoding="utf-8")
    print(f"wrote {options.output}, {len(page.encode())} bytes", file=sys.stderr)
    return 0


def _number(text: str) -> int:
    if not text.isdigit():
        raise ArgumentError(f'--sizes: expected NAME=NUMBER,…, got "{text}"')
    return int(text)


def _dependencies(options: argparse.Namespace) -> str:
    """Returns a rule for make. The output depends on the compiler, on the kernel's file, and on the modules that the
    file imports from its folder."""
    path = Path(options.kernel.rpartition(":")[0] if ".py:" in options.kernel else options.kernel).resolve()
    files = {Path(file).resolve() for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}
    compiler = Path(toolchain.compiler().__file__)
    needed = {path, compiler, *compiler.parent.glob("libmlafix_compiler.so*")}
    needed |= {file for file in files if path.parent in file.parents and "site-packages" not in file.parts}
    names = [str(file).replace(" ", "\\ ") for file in (Path(options.output), *sorted(needed))]
    return f"{names[0]}: {' '.join(names[1:])}\n"


def _info(_options: argparse.Namespace) -> int:
    for name, value in inventory.facts().items():
        heading = f"{name:9} "
        # Only the list of library kernels is wrapped; paths and versions are not.
        print(textwrap.fill(value, 100, initial_indent=heading, subsequent_indent=" " * len(heading)) if name == "library" else heading + value)
    return 0


def _cmake_dir(_options: argparse.Namespace) -> int:
    folder = Path(__file__).parent / "native" / "lib" / "cmake" / "mlafix"
    if not folder.is_dir():
        raise ArgumentError(f"expected the headers and library for C and C++ in {folder}, got none; in a build from source, run cmake --install")
    print(folder)
    return 0


def _requests(options: argparse.Namespace) -> list[tuple[Kernel, dict[str, str]]]:
    """Returns the requests of a command line: its kernel with the bindings of each --bind, and the lines of the file of
    --file."""
    wanted = [("", options.kernel, text) for text in options.bind or [""]] if options.kernel else []
    if options.file:
        for number, line in enumerate(Path(options.file).read_text(encoding="utf-8").splitlines(), 1):
            words, place = line.partition("#")[0].split(), f"{options.file}:{number}: "
            if len(words) > 2:
                raise ArgumentError(f'{place}expected KERNEL NAME=VALUE,…, got "{line.strip()}"')
            wanted += [(place, words[0], words[1] if len(words) > 1 else "")] if words else []
    if not wanted:
        raise ArgumentError("expected a kernel or --file FILE, got neither")
    return [_request(*one) for one in wanted]


def _request(place: str, kernel: str, bindings: str) -> tuple[Kernel, dict[str, str]]:
    """Returns a kernel and its bindings. `place` is the prefix "FILE:LINE: " of errors for a request in a file, else
    "". Raises the errors of find_kernel and parse_bindings."""
    try:
        return find_kernel(kernel), parse_bindings(bindings, "" if place else "--bind") if bindings else {}
    except ArgumentError as error:
        raise ArgumentError(f"{place}{error}") from None


def _warmup(options: argparse.Namespace) -> int:
    requests = _requests(options)
    begin = time.monotonic()
    warmup(requests, options.device, jobs=options.jobs)
    _check_kept(requests, options.device)
    print(f"{len(requests)} ready after {time.monotonic() - begin:.1f} s", file=sys.stderr)
    return 0


def _check_kept(requests: Sequence[tuple[Kernel, dict[str, str]]], device: str | None) -> None:
    """Raises UnitError unless another process will find the compiled code on disk. Skips the check if nothing can
    compile here, since the code then came from disk."""
    if _env.strict() or toolchain.compiler_file() is None:
        return
    target = _runtime.device_target(device or default_device())
    lost = sum(not kernel.variants.is_kept(kernel.bindings(bindings), target) for kernel, bindings in requests)
    if lost:
        folder = cache.compiler_cache()
        place, hint = (f'cache "{folder.path}"', "is the folder writable and large enough?") if folder else ("cache", "unset MLAFIX_CACHE=0, or set MLAFIX_CACHE_DIR where there is no home folder")
        count = f"{len(requests)} compiled kernel{'s' if len(requests) > 1 else ''}"
        raise UnitError(f"{place}: expected {count} to stay on disk, got {len(requests) - lost}; {hint}")


def _cache(options: argparse.Namespace) -> int:
    if options.clear:
        print(f"{inventory.size_text(inventory.clear_cache(only_old=options.clear == 'old'))} removed")
        return 0
    current = cache.compiler_cache()
    for folder, files, size in inventory.cached_folders():
        note = "  of this compiler" if current and folder == current.path else ""
        print(f"{inventory.size_text(size):>12}  {files:5} files  {folder}{note}")
    print(f"{inventory.facts()['cache']}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mlafix", description="Kernels for the small work around attention.")
    commands = parser.add_subparsers(dest="command", required=True)
    compile_ = commands.add_parser("compile", help="compile a kernel ahead")
    compile_.add_argument("kernel", metavar="KERNEL", help="FILE.py:KERNEL, FILE.mlir, FILE.mlir:KERNEL or a library kernel")
    compile_.add_argument("--bind", action="append", default=[], metavar="NAME=VALUE,…",
                          help="values of the kernel's names; once for each specialisation")  # fmt: skip
    compile_.add_argument("--target", action="append", default=[], metavar="NAME,…",
                          help=", ".join(_runtime.TARGETS) + ", or cpu for every level of this machine's architecture")  # fmt: skip
    compile_.add_argument("--emit", choices=_runtime.EMISSIONS, default="unit", help="what to write (default: unit)")
    compile_.add_argument("--assembler", choices=_runtime.ASSEMBLERS, default="any")
    compile_.add_argument("--ptxas", default="", metavar="PATH", help="a ptxas to prefer")
    compile_.add_argument("--name", default="", metavar="IDENTIFIER",
                          help="what header and tvm-ffi call the unit (default: -o's file name without its extension)")  # fmt: skip
    compile_.add_argument("--launch", default="", metavar="JSON",
                          help='the arguments of a launch, for faults: {"x": {"sizes": [2], "elements": [0, 1]}, "n": 2}')  # fmt: skip
    compile_.add_argument("--depfile", default="", metavar="FILE", help="also write what the output depends on, for make")
    compile_.add_argument("--line-info", action="store_true", help="GPU code names the source's lines, for profilers")
    compile_.add_argument("-o", dest="output", default="", metavar="FILE", help="the file to write; - is standard output")
    compile_.set_defaults(run=_compile)
    check = commands.add_parser("check", help="say whether kernels compile, what is proved of them, and what the compiler warns of; status 1 if anything is wrong")
    check.add_argument("kernel", metavar="KERNEL", help="FILE.py for all of its kernels, else as compile takes it")
    check.add_argument("--bind", default="", metavar="NAME=VALUE,…", help="values of the kernels' names (default: any)")
    check.add_argument("--target", default="", metavar="NAME", help="also generate code for it, which needs all names bound")
    check.add_argument("--json", action="store_true", help="one JSON object, with all proofs")
    check.set_defaults(run=_check_kernels)
    explain_ = commands.add_parser("explain", help="write a page of HTML that explains a kernel")
    explain_.add_argument("kernel", metavar="KERNEL",
                          help="as compile takes it, or UNIT.mlafix, UNIT.mlafix:KERNEL: a page with what the unit holds of one specialisation")  # fmt: skip
    explain_.add_argument("--bind", default="", metavar="NAME=VALUE,…",
                          help="values of the kernel's names; of a unit's specialisations, if there are several, those that choose one")  # fmt: skip
    explain_.add_argument("--target", required=True, metavar="NAME",
                          help="one of " + ", ".join(_runtime.TARGETS) + ", or cpu for this machine's level")  # fmt: skip
    explain_.add_argument("--sizes", action="append", default=[], metavar="NAME=NUMBER,…",
                          help="sizes of dynamic dims and values of scalars; once for each launch to be shown (default: 1024)")  # fmt: skip
    explain_.add_argument("--bandwidth", type=float, default=0.0, metavar="GB/S",
                          help="of the memory (default: of a common chip of the target, where that is known)")  # fmt: skip
    explain_.add_argument("-o", dest="output", required=True, metavar="FILE", help="the page to write")
    explain_.set_defaults(run=_explain)
    info = commands.add_parser("info", help="say what this installation has: compiler, assembler, devices, caches")
    info.set_defaults(run=_info)
    native = commands.add_parser("cmake-dir", help="print the folder of the CMake package, for find_package(mlafix) in C and C++")
    native.set_defaults(run=_cmake_dir)
    warm = commands.add_parser("warmup", help="compile specialisations into the cache before they are called")
    warm.add_argument("kernel", nargs="?", default="", metavar="KERNEL", help="as for compile")
    warm.add_argument("--bind", action="append", default=[], metavar="NAME=VALUE,…", help="once for each specialisation")
    warm.add_argument("--file", default="", metavar="FILE", help="a text file of lines \"KERNEL NAME=VALUE,…\"; # begins a comment")
    warm.add_argument("--device", default=None, metavar="DEVICE", help="cpu or cuda:N (default: the first GPU, else the CPU)")
    warm.add_argument("--jobs", type=int, default=None, metavar="N", help="how many at a time (default: as many as cores)")
    warm.set_defaults(run=_warmup)
    kept = commands.add_parser("cache", help="say what compiled kernels take on disk, or remove them")
    kept.add_argument("--clear", nargs="?", const="all", choices=("all", "old"), help="remove all, or those of other compilers")
    kept.set_defaults(run=_cache)
    commands.add_parser("audit", add_help=False, help="check a backend of attention against the contract; needs torch")
    _add_engine_commands(commands)
    return parser


def _add_engine_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for name, module, what in (
        ("watch", watch_command, "show a report of MLAFIX_WATCH, and write a script that makes the call again"),
        ("engines", report, "say what the plugins of vLLM and SGLang replace, and why not more"),
        ("flashinfer-solutions", flashinfer, "write merges as files that FlashInfer's trace apply takes"),
        ("hub-kernels", hub, "put libraries of TVM-FFI functions into a folder of Hugging Face's kernels"),
    ):
        command = commands.add_parser(name, help=what)
        module.add_arguments(command)
        command.set_defaults(run=module.run)


def _audit_parser() -> argparse.ArgumentParser:
    """Returns the parser of the audit command, the only command that needs torch. Imports torch. Raises ArgumentError
    if torch is missing."""
    try:
        from .audit import command
    except ImportError as error:
        hint = "; pip install torch" if error.name == "torch" else ""
        raise ArgumentError(f"audit: expected torch, got {error}{hint}") from error

    parser = argparse.ArgumentParser(prog="python -m mlafix audit", description="Checks a backend of attention against docs/Contract.md.")
    command.add_arguments(parser)
    parser.set_defaults(run=command.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line, by default that of the process, and returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _audit_parser().parse_args(given[1:]) if given[:1] == ["audit"] else _parser().parse_args(given)
        status: int = options.run(options)
        return status
    except (Error, OSError) as error:
        text = str(error)
        print(text if ": error: " in text else f"error: {text}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
