#!/usr/bin/env python3
"""Compares facts about the speed of kernels, which need no measurement, with facts.txt.

    facts.py --tool mlafix-opt --kernels DIR [--table FILE] [--registers] [--update] [KERNEL...]
    facts.py --ptx FILE        the facts of some PTX

The table has paragraphs for every kernel: its name and bindings, then a line of facts for every target and variant. The numbers of
parameters, barriers, registers (rounded up to eights) and bytes of local memory are upper bounds. Accesses to global memory
(count x bytes) and threads per block must be equal. The number of loads ahead of the first exponential is a lower bound. No variant
may use non-coherent loads (since calls may be in place) or call functions. If the target has dependent launch, no variant may access
memory before it waits.

--registers also checks registers and local memory, which needs an assembler. --update writes the actual facts to the table; review
the difference. It adds a paragraph for each kernel of library.json that the table lacks, with the first bindings of its units.
Exit code: 0 equal to the table, 1 not, 2 a wrong command line or a failing compiler.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ACCESS = re.compile(r"^\s*(?:@!?%\w+\s+)?(ld|st)\.(?:\w+\.)*?global((?:\.[\w:]+)*)\s")
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(")
USAGE = re.compile(r"^(\w+) (\w+): (\d+) registers, (\d+) bytes local")
TARGETS = ("sm_80", "sm_90", "sm_100")


@dataclass
class Facts:
    """The facts of one variant on one target. `threads`, `loads` and `stores` are strings, written as in the table."""

    params: int = 0
    threads: str = ""  # N, or <=N if the launch may halve it
    loads: str = "none"
    ahead: int = 0
    stores: str = "none"
    barriers: int = 0
    registers: int = 0
    local: int = 0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Returns the line of the table for these facts."""
        words = [f"params {self.params}", f"threads {self.threads}", f"loads {self.loads}", f"ahead {self.ahead}",
                 f"stores {self.stores}"]
        words += [f"{name} {value}" for name in ("barriers", "registers", "local") if (value := getattr(self, name))]
        return "  ".join(words)


def width_of(suffix: str) -> int:
    """Returns the number of bytes of an access whose opcode ends with `suffix`: 16 for ".v4.b32"."""
    count = re.search(r"\.v([248])\b", suffix)
    bits = re.search(r"\.[busf](8|16|32|64|128)$", suffix)
    if not bits:
        raise ValueError(f"expected a type at the end of '{suffix}'")
    return (int(count.group(1)) if count else 1) * int(bits.group(1)) // 8


def histogram(widths: list[int]) -> str:
    """Formats [16, 4, 16] as "2x16+1x4"."""
    counts = Counter(widths)
    return "+".join(f"{counts[width]}x{width}" for width in sorted(counts, reverse=True)) or "none"


def facts_of_entry(lines: list[str], waits: bool) -> Facts:
    """Returns the facts of the entry with these lines. `waits` says that the target has dependent launch."""
    facts = Facts()
    loads: list[int] = []
    stores: list[int] = []
    ahead: int | None = None
    has_waited = False
    for line in lines:
        facts.params += line.lstrip().startswith(".param")
        facts.barriers += bool(re.match(r"\s*(@\S+\s+)?bar(rier)?\.(cta\.)?(sync|red)", line))
        if match := re.match(r"\.(req|max)ntid (\d+)", line):
            facts.threads = ("<=" if match.group(1) == "max" else "") + match.group(2)
        has_waited |= "griddepcontrol.wait" in line
        if "ex2.approx" in line and ahead is None:
            ahead = len(loads)
        if re.search(r"\bcall\b", line):
            facts.faults.append("expected no call, got '" + line.strip() + "'")
        if match := ACCESS.match(line):
            suffix = match.group(2)
            (loads if match.group(1) == "ld" else stores).append(width_of(suffix))
            if ".nc" in suffix:
                facts.faults.append("expected coherent loads, got '" + line.strip() + "'")
            if waits and not has_waited:
                facts.faults.append("expected a wait for the preceding grid before '" + line.strip() + "'")
    facts.ahead = len(loads) if ahead is None else ahead
    facts.loads, facts.stores = histogram(loads), histogram(stores)
    return facts


def facts_of_ptx(text: str) -> dict[str, Facts]:
    """Returns the facts of every entry, by name."""
    target = re.search(r"^\.target sm_(\d+)", text, re.MULTILINE)
    waits = target is not None and int(target.group(1)) >= 90
    entries: dict[str, Facts] = {}
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if match := ENTRY.match(line):
            end = next(i for i in range(index, len(lines)) if lines[i].startswith("}"))
            entries[match.group(1)] = facts_of_entry(lines[index + 1:end], waits)
    return entries


def measure(tool: str, source: Path, bindings: str, registers: bool) -> dict[str, Facts]:
    """Returns the facts of a unit that is compiled for all targets (docs/UnitFormat.md), by "target variant"."""
    command = [tool, str(source), f"--target={','.join(TARGETS)}", "-o", "-", *(["--resource-usage"] if registers else ["--assembler=none"])]
    command += [f"--specialize={bindings}"] if bindings else []
    done = subprocess.run(command, capture_output=True)
    said = done.stderr.decode()
    if done.returncode:
        sys.stderr.write(said)
        sys.exit(2)
    unit = done.stdout
    (size,) = struct.unpack_from("<Q", unit, 24)
    found: dict[str, Facts] = {}
    for code in json.loads(unit[64 : 64 + size])["kernels"][0]["code"]:
        (image,) = (one for one in code["images"] if one["format"] == "ptx")
        for entry, facts in facts_of_ptx(unit[image["offset"] : image["offset"] + image["size"]].decode()).items():
            found[f"{code['target']} {entry.removeprefix(source.stem + '_')}"] = facts
    for line in said.splitlines():
        if match := USAGE.match(line):
            facts = found[f"{match.group(2)} {match.group(1).removeprefix(source.stem + '_')}"]
            facts.registers, facts.local = int(match.group(3)), int(match.group(4))
    return found


def differences(want: Facts, got: Facts, registers: bool) -> list[str]:
    """Returns the differences as sentences."""
    wrong = list(got.faults)
    most = {"params": want.params, "barriers": want.barriers}
    if registers:
        # A multiprocessor allocates registers in multiples of eight, so the limit is rounded up to such a multiple.
        # Versions of the assembler may differ by less, which has no effect.
        most |= {"registers": -(-want.registers // 8) * 8, "local": want.local}
    for name, limit in most.items():
        if getattr(got, name) > limit:
            wrong.append(f"expected at most {limit} {name}, got {getattr(got, name)}")
    for name in ("threads", "loads", "stores"):
        if getattr(got, name) != getattr(want, name):
            wrong.append(f"expected {name} {getattr(want, name)}, got {getattr(got, name)}")
    if got.ahead < want.ahead:
        wrong.append(f"expected at least {want.ahead} loads ahead of the first exponential, got {got.ahead}")
    return wrong


def parse_line(line: str) -> tuple[str, Facts]:
    """Parses a line of the table into ("sm_90 dense", its facts)."""
    target, variant, *words = line.split()
    facts = Facts()
    for name, value in zip(words[::2], words[1::2]):
        setattr(facts, name, value if name in ("threads", "loads", "stores") else int(value))
    return f"{target} {variant}", facts


Table = dict[tuple[str, str], dict[str, Facts]]


def read_table(path: Path) -> tuple[list[str], Table]:
    """Returns the comment lines, and the facts by kernel and bindings."""
    head: list[str] = []
    table: Table = {}
    paragraph = ("", "")
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            head.append(line)
        elif line.startswith(" "):
            key, facts = parse_line(line)
            table[paragraph][key] = facts
        elif line:
            kernel, _, bindings = line.partition(" ")
            paragraph = (kernel, bindings)
            table[paragraph] = {}
    return head, table


def write_table(path: Path, head: list[str], table: Table) -> None:
    """The inverse of read_table."""
    lines = list(head)
    for (kernel, bindings), facts in table.items():
        lines += ["", f"{kernel} {bindings}".rstrip()]
        lines += [f"  {key:<14}{value.line()}" for key, value in facts.items()]
    path.write_text("\n".join(lines) + "\n")


def listed(kernels: Path) -> list[tuple[str, str]]:
    """Returns the kernels in library.json, each with the first bindings of its units."""
    entries = json.loads((kernels / "library.json").read_text())["kernels"]
    first = [(entry["name"], entry["units"][0]) for entry in entries]
    return [(name, re.sub(r"\{([^,}]*)[^}]*\}", r"\1", bindings)) for name, bindings in first]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool")
    parser.add_argument("--kernels", type=Path)
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("facts.txt"))
    parser.add_argument("--registers", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--ptx", type=Path)
    parser.add_argument("names", nargs="*", metavar="KERNEL")
    options = parser.parse_args()
    if options.ptx:
        for entry, facts in facts_of_ptx(options.ptx.read_text()).items():
            print("\n".join([f"{entry}: {facts.line()}"] + [f"{entry}: {fault}" for fault in facts.faults]))
        return 0
    if not options.tool or not options.kernels:
        parser.error("expected --tool and --kernels, or --ptx")
    head, table = read_table(options.table)
    kernels = [name for name, _ in table]
    bad = False
    for name, bindings in listed(options.kernels):
        if name not in kernels and options.update and name in (options.names or [name]):
            table[name, bindings] = {}
        elif name not in kernels:
            print(f"{Path(name).name}.mlir: expected a paragraph in {options.table.name}, got none: --update writes it")
            bad = True
    kernels = [name for name, _ in table]
    for name in options.names:
        if name not in kernels:
            parser.error(f"expected a kernel of {options.table.name}, got '{name}'")
    for (name, bindings), wanted in table.items():
        if options.names and name not in options.names:
            continue
        got = measure(options.tool, options.kernels / f"{name}.mlir", bindings, options.registers or options.update)
        if options.update:
            table[name, bindings] = got
            continue
        wrong = [f"{key}: {sentence}" for key in got if key in wanted
                 for sentence in differences(wanted[key], got[key], options.registers)]
        if got.keys() != wanted.keys():
            wrong.append(f"expected the variants {', '.join(wanted)}, got {', '.join(got)}")
        for sentence in wrong:
            print(f"{name} {sentence}" if kernels.count(name) == 1 else f"{name} {bindings} {sentence}")
        bad |= bool(wrong)
    if options.update:
        write_table(options.table, head, table)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
