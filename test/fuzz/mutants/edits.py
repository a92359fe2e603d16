"""Functions that make small changes to a kernel. Each takes the lines of the kernel and yields, for each mutant,
the kind of change, the number of the changed line and the text of the mutant."""
import dataclasses
import re

ACCESS = re.compile(r"%\w+\[([^\]]*)\]")
PREDICATE = re.compile(r" if %\w+(?: else %\w+)?(?= :)")
COMPARISONS = {"slt": ("sle", "sgt"), "sle": ("slt", "sge"), "sge": ("sgt", "slt"), "sgt": ("sge", "sle"), "eq": ("ne",),
               "ne": ("eq",)}


@dataclasses.dataclass
class Mutant:
    kind: str
    what: str  # the original line and its number
    source: str


def is_access(line):
    return bool(re.search(r"mlafix\.(load|store)(_state)? ", line))


def with_line(lines, number, *new):
    return "\n".join(lines[:number] + list(new) + lines[number + 1:])


def dropped_stores(lines):
    for i, line in enumerate(lines):
        if "mlafix.store" in line:
            yield "drop a store", i, with_line(lines, i)


def dropped_predicates(lines):
    for i, line in enumerate(lines):
        if is_access(line) and PREDICATE.search(line):
            yield "drop a predicate", i, with_line(lines, i, PREDICATE.sub("", line))


def inverted_predicates(lines):
    for i, line in enumerate(lines):
        found = PREDICATE.search(line) if is_access(line) else None
        if not found:
            continue
        name = re.match(r" if (%\w+)", found.group()).group(1)
        indent = re.match(r" *", line).group()
        yield "invert a predicate", i, with_line(
            lines, i, f"{indent}%mutant_true = arith.constant true",
            f"{indent}%mutant = arith.xori {name}, %mutant_true : i1", line.replace(f" if {name}", " if %mutant", 1))


def block_end(lines, start, indent):
    return next(i for i in range(start + 1, len(lines)) if lines[i].startswith(indent + "}"))


def dropped_branches(lines):
    for i, line in enumerate(lines):
        found = re.match(r"( *)scf\.if (%\w+) \{", line)
        if found:
            indent = found.group(1)
            yield "drop a branch", i, with_line(lines, i, f"{indent}%mutant = arith.constant true",
                                                line.replace(found.group(2), "%mutant"))
        found = re.match(r"( *)\} else \{", line)
        if found:
            end = block_end(lines, i, found.group(1))
            yield "drop an else", i, "\n".join(lines[:i] + lines[end:])


def changed_comparisons(lines):
    for i, line in enumerate(lines):
        found = re.search(r"arith\.cmpi (\w+),", line)
        for other in COMPARISONS.get(found.group(1), ()) if found else ():
            kind = "off by one in a bound" if other in ("sle", "slt", "sge", "sgt") and other[:2] == found.group(1)[:2] \
                else "turn a comparison"
            yield kind, i, with_line(lines, i, line.replace(f"cmpi {found.group(1)},", f"cmpi {other},"))


def changed_loops(lines):
    for i, line in enumerate(lines):
        found = re.match(r"( *)(.*scf\.for %\w+ = )(%\w+) to (%\w+) step(.*)", line)
        if not found:
            continue
        indent, head, low, high, rest = found.groups()
        one = f"{indent}%mutant_one = arith.constant 1 : index"
        for op, operand, text in [("addi", high, f"{low} to %mutant"), ("subi", high, f"{low} to %mutant"),
                                  ("addi", low, f"%mutant to {high}"), ("subi", low, f"%mutant to {high}")]:
            yield "off by one in a bound", i, with_line(
                lines, i, one, f"{indent}%mutant = arith.{op} {operand}, %mutant_one : index",
                f"{indent}{head}{text} step{rest}")


def changed_indices(lines):
    """Changes each index of an access: off by one, halved, swapped."""
    for i, line in enumerate(lines):
        if not is_access(line):
            continue
        indent = re.match(r" *", line).group()
        for found in ACCESS.finditer(line):
            indices = [index.strip() for index in found.group(1).split(",") if index.strip()]

            def replaced(new):
                return line[:found.start(1)] + ", ".join(new) + line[found.end(1):]

            for k, index in enumerate(indices):
                for kind, op, number in [("off by one in an index", "addi", 1), ("off by one in an index", "subi", 1),
                                         ("// on an index", "divui", 2), ("% on an index", "remui", 2),
                                         ("* on an index", "muli", 2)]:
                    yield kind, i, with_line(
                        lines, i, f"{indent}%mutant_number = arith.constant {number} : index",
                        f"{indent}%mutant = arith.{op} {index}, %mutant_number : index",
                        replaced(indices[:k] + ["%mutant"] + indices[k + 1:]))
            for k in range(len(indices) - 1):
                if indices[k] != indices[k + 1]:
                    yield "swap indices", i, with_line(
                        lines, i, replaced(indices[:k] + [indices[k + 1], indices[k]] + indices[k + 2:]))


def changed_extents(lines):
    for i, line in enumerate(lines):
        found = re.search(r"mlafix\.(?:forall|ragged_forall) \([^)]*\) in \(([^)]*)\)", line)
        extents = found.group(1).split(", ") if found else []
        first = 2 if "ragged_forall" in line else 0
        for k in range(first, len(extents) - 1):
            swapped = extents[:k] + [extents[k + 1], extents[k]] + extents[k + 2:]
            yield "swap extents", i, with_line(lines, i, line.replace(found.group(1), ", ".join(swapped), 1))


def mutate(source):
    """Returns all mutants of a kernel's source."""
    lines = source.split("\n")
    for edit in (dropped_stores, dropped_predicates, inverted_predicates, dropped_branches, changed_comparisons, changed_loops,
                 changed_indices, changed_extents):
        for kind, line, text in edit(lines):
            yield Mutant(kind, f"line {line + 1}: {lines[line].strip()}", text)
