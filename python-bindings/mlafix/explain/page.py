"""Writes the facts about a kernel as self-contained HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .._reports.remarks import Remark
from .facts import Facts
from .launches import ELEMENT_BYTES, Access, Sizes, bytes_moved, check_names, choose_version, coalescing, find_accesses, pack_of, plan_grid
from .lines import Line, around
from .picture import draw_row
from .style import SCRIPT, STYLE


def write_page(facts: Facts, sizes: Sequence[Mapping[str, int]] = ({},), bandwidth: float = 0.0) -> str:
    """Returns the HTML text of the page.

    Args:
        facts: the facts to show.
        sizes: for each launch to show, sizes of dynamic dims and values of scalars by name. The layout and the accesses
            are shown for the first launch.
        bandwidth: the memory's bandwidth in GB/s; 0 takes that of a common chip of the target, if it is known.

    Raises:
        ArgumentError: a size is given for a name that is neither a dim nor a scalar.
    """
    launches = [Sizes(facts, given) for given in sizes]
    for given in sizes:
        check_names(facts, given)
    accesses = find_accesses(facts)
    title = f"{facts.kernel} for {facts.target}"
    body = "".join([
        f"<h1>{escape(title)}</h1><p>{escape(_bindings(facts))}</p>",
        "".join(f"<p>{escape(note)}</p>" for note in facts.notes),
        _panes(facts, accesses),
        _layouts(facts, launches[0], accesses),
        _accesses(facts, launches[0], accesses),
        _versions(facts),
        _launches(facts, launches, accesses, bandwidth),
        _proofs(facts),
        _arguments(facts),
    ])  # fmt: skip
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>{body}<script>{SCRIPT}</script></body></html>\n"
    )


def _bindings(facts: Facts) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(facts.bindings.items())) or "no bindings"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Returns an HTML table whose cells are HTML. Columns whose number is in `numbers` are aligned to the right."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=n' if i in numbers else ''}>{text}</{tag}>" for i, text in enumerate(texts))

    lines = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=wide><table><tr>{cells('th', heads)}</tr>{lines}</table></div>"


# -- Source, IR, code ------------------------------------------------------------------------------------------------


def _code(lines: Sequence[Line], stage: str, hidden: bool, notes: Mapping[int, Sequence[str]] | None = None) -> str:
    """Returns the HTML of a stage's lines. If `notes` (HTML by line number) is given, the lines are the source's lines
    and get line numbers."""

    def one(line: Line) -> str:
        number = f"<b>{line.source:4} </b>" if notes is not None else ""
        link = f' data-s="{line.source}"' if line.source else ""
        below = "".join((notes or {}).get(line.source, ()))
        return f'<div class="l"{link}>{number}{escape(line.text) or " "}</div>{below}'

    return f'<div class="code" data-stage="{escape(stage)}"{" hidden" if hidden else ""}>{"".join(map(one, lines))}</div>'


# A description of each stage, shown as the tooltip of the stage's name.
_STAGES = {
    "mlafix dialect": "the kernel in the mlafix dialect, with its names bound and its constants computed",
    "rows and scalars": "the same without states: operations on rows, numbers and memory",
    "one thread's program": "what one thread of the GPU does: its packs of the rows",
    "one row's program": "what the CPU does for one row: pack by pack",
    "LLVM dialect": "what LLVM makes machine code of",
    "PTX": "the code that an assembler makes machine code of",
}


def _pane(stages: Mapping[str, Sequence[Line]], shown: str) -> str:
    buttons = "".join(
        f'<button data-stage="{escape(name)}" title="{escape(_STAGES[name])}"{" class=on" if name == shown else ""}>{escape(name)}</button>'
        for name in stages
    )
    return f'<div class="pane"><header>{buttons}</header>{"".join(_code(v, k, k != shown) for k, v in stages.items())}</div>'


# Names of remarks that the page does not repeat, since other parts of it show their content.
_ELSEWHERE = frozenset({"code-version", "layout", "block"})
_NARROW = re.compile(r"rows of ([\w, ]+) are moved (\d+) bytes? at a time")


def _narrow(facts: Facts) -> dict[str, Remark]:
    """Returns the arguments whose rows the code version of large calls moves by narrow accesses: maps the name of each
    to the remark that reports the accesses."""
    found: dict[str, Remark] = {}
    for remark in facts.remarks:
        if remark.subject == facts.main["entry"] and (match := _NARROW.match(remark.text)):
            found.update(dict.fromkeys(match[1].split(", "), remark))
    return found


def _notes(facts: Facts, accesses: Sequence[Access]) -> dict[int, list[str]]:
    """Returns HTML of the compiler's remarks by source line: remarks about the kernel and about its code version of
    large calls. Remarks about lost time come first.

    A remark about narrow accesses appears at each line that makes such accesses.
    """
    narrow = _narrow(facts)
    said: dict[int, dict[Remark, None]] = {}
    for access in accesses:
        if access.whole_row and (remark := narrow.get(facts.args[access.argument]["name"])):
            said.setdefault(access.source, {})[remark] = None
    placed = {remark for remarks in said.values() for remark in remarks}
    for remark in facts.remarks:
        if remark.subject in (facts.kernel, facts.main["entry"]) and remark.name not in _ELSEWHERE and remark not in placed:
            said.setdefault(remark.message.line, {})[remark] = None
    notes = {}
    for line, remarks in said.items():
        ordered = sorted(remarks, key=lambda remark: not remark.matters)
        notes[line] = [
            f'<div class="r{" costs" if one.matters else ""}"><span>{escape(one.name)}</span> {escape(one.text)}</div>' for one in ordered
        ]
    return notes


def _panes(facts: Facts, accesses: Sequence[Access]) -> str:
    """Returns three panes side by side: the source with remarks below its lines, all stages but the last, and the last
    stage. The source is trimmed to the kernel."""
    if not facts.stages:
        return ""
    *between, last = facts.stages
    parts = []
    if facts.source:
        lines = around(facts.source, {line.source for stage in facts.stages.values() for line in stage if line.source})
        name = escape(facts.file.rsplit("/", 1)[-1])
        parts.append(f'<div class="pane"><header>{name}</header>{_code(lines, "source", False, _notes(facts, accesses))}</div>')
    if between:
        parts.append(_pane({name: facts.stages[name] for name in between}, between[0]))
    parts.append(_pane({last: facts.stages[last]}, last))
    head = next((remark.message.line for remark in facts.remarks if remark.name == "code-version"), 0)
    hint = ""
    if facts.source:
        hint = "A line under the pointer marks what comes of it. A click keeps the mark and scrolls to it. Below a line stands what "
        hint += "the compiler says of it; what it did not do, and what that costs, is marked."
    return f'<h2>From the source to code</h2><p>{hint}</p><div class="panes" data-head="{head}">{"".join(parts)}</div>'


# -- Layout and accesses ---------------------------------------------------------------------------------------------


def _layouts(facts: Facts, sizes: Sizes, accesses: Sequence[Access]) -> str:
    version = facts.main
    layout = version["layout"]
    on_gpu = facts.target.startswith("sm_")
    rows: dict[tuple[int, float], list[str]] = {}
    for index, arg in enumerate(facts.args):
        whole = any(access.argument == index and access.whole_row for access in accesses)
        if arg["kind"] == "tensor" and (whole if accesses else len(arg["shape"]) > 1 and arg["strides"][-1] == 1):
            key = (sizes.shape(index)[-1], ELEMENT_BYTES[arg["dtype"]])
            rows.setdefault(key, []).append(f"{arg['name']} ({arg['dtype']})")
    parts = [f"<h2>Layout of <code>{escape(version['entry'])}</code></h2>", f"<p>{_layout_text(layout, on_gpu)}</p>"]
    for (size, width), names in rows.items():
        pack = pack_of(layout, size)
        held = -(-size // (pack * layout["lanes"])) if layout.get("parts", 1) == 1 else layout["packs"]
        parts.append(
            f"<p>A row of {size} elements of {width} bytes in {escape(', '.join(names))}: packs of {pack} elements, "
            f"{pack * width} bytes; {'a lane holds' if on_gpu else 'the program goes through'} {held}.</p>"
        )
        parts.append(draw_row(layout, size, width, on_gpu))
    return "".join(parts)


def _layout_text(layout: Mapping[str, int], on_gpu: bool) -> str:
    if not on_gpu:
        return "One lane goes through a row, a pack at a time. Colours tell packs apart."
    if layout.get("groups", 1) > 1:
        return (f"A row has {layout['lanes']} lanes in each of up to {layout['groups']} lane groups, among which the launch "
                "shares the chunks of its running merge. Numbers and colours are lanes of a warp.")  # fmt: skip
    lanes, blocks = layout["lanes"], layout.get("blocks", 1)
    holds = f"a cluster of {blocks} blocks holds 1 row" if blocks > 1 else f"a block holds {layout['rows']} rows"
    if layout.get("parts", 1) > 1:
        return f"A row has up to {layout['parts']} parts, each in a block of {lanes} lanes. Numbers and colours are lanes of the first block's warps."
    return (
        f"{lanes} {'lanes share' if lanes > 1 else 'lane holds'} a row, {holds}. Numbers and "
        "colours are lanes of a warp (warp:lane from the second warp on); the rows of the first warp are shown."
    )


def _accesses(facts: Facts, sizes: Sizes, accesses: Sequence[Access]) -> str:
    if not accesses or not facts.target.startswith("sm_"):
        return ""
    rows = []
    narrow = _narrow(facts)
    for access in accesses:
        seen = coalescing(sizes, access, facts.main)
        where = f'<a href="#" data-s="{access.source}">line {access.source}</a>' if access.source else ""
        direction = "store" if access.is_store else "load"
        if seen is None:
            rows.append([f"<code>{escape(access.text)}</code>", direction, where, "", "", "which rows a warp has is decided by data, or by the launch"])
            continue
        style, word = ("yes", "coalesced") if seen.share > 0.99 else ("part", f"{seen.share:.0%} of the sectors' bytes are used")
        if None in access.indices or facts.main["geometry"]["kind"] != "rows":
            word += " within a row"
        name = facts.args[access.argument]["name"]
        if access.whole_row and name in narrow:
            style, word = "part", f"{word}, but {escape(narrow[name].text)}"
        bar = f'<span class="bar"><i style="width:{seen.share * 90:.0f}px"></i></span>'
        rows.append([f"<code>{escape(access.text)}</code>", direction, where, f"{seen.bytes}", f"{seen.sectors}",
                     f'{bar}<span class="{style}">{word}</span>'])  # fmt: skip
    note = (
        f"What the {min(32, facts.main['layout']['lanes'] * facts.main['layout']['rows'])} lanes of the first warp "
        "touch with one instruction, in tensors without gaps: distinct bytes, and the sectors of 32 bytes that hold them. The "
        "rest of a sector comes out of a cache where other warps use it. "
        f"{escape(_sizes_text(facts, sizes))}"
    )
    heads = ["access", "", "source", "bytes", "sectors", ""]
    return f"<h2>Accesses of a warp</h2><p>{note}</p>{_table(heads, rows, (3, 4))}"


# -- Code versions and launches --------------------------------------------------------------------------------------


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def guard_text(guard: Mapping[str, Any], args: Sequence[Mapping[str, Any]]) -> str:
    """Describes a guard in a sentence. docs/UnitFormat.md defines the exact meaning of guards."""
    names = ", ".join(args[index]["name"] for index in guard.get("args", [guard["arg"]] if "arg" in guard else []))
    dim = args[guard["arg"]]["dims"][guard["dim"]] or f"dim {guard['dim']}" if "dim" in guard else ""
    value = guard.get("value")
    sentences = {
        "stride": f"stride {value} of {names} along {dim}",
        "packed": f"stride of {names} along {dim} equal to {value} times the size of the next dim",
        "multiple": f"{dim} of {names} a multiple of {value}",
        "at_most": f"{dim} of {names} at most {value}",
        "align": f"rows of {names} at multiples of {guard.get('bytes')} bytes",
        "distinct": f"different addresses for {names}",
        "same_strides": f"identical strides of {names}",
        "beyond_cache": f"more bytes in {names} than half of the last cache holds",
        "max_rows": f"at most {value} rows",
    }
    return sentences.get(guard["kind"], str(dict(guard)))


def _versions(facts: Facts) -> str:
    rows = []
    for number, version in enumerate(facts.versions):
        guards = "".join(f"<li>{escape(guard_text(guard, facts.args))}</li>" for guard in version["guards"])
        layout = version["layout"]
        registers = str(version["registers"]) if "registers" in version else "unknown"
        rows.append([
            str(number + 1), f"<code>{escape(version['entry'])}</code>", f"<ul>{guards}</ul>" if guards else "every legal call",
            f"{_count(layout['lanes'], 'lane')}, packs of {layout['pack']}, {_count(layout['rows'], 'row')}",
            registers, "yes" if version["dependent_launch"] else "no",
        ])  # fmt: skip
    on_gpu = facts.target.startswith("sm_")
    heads = ["", "code version", "is launched if", "layout of a block", "registers", "waits for the preceding grid"]
    if not on_gpu:
        heads, rows = [*heads[:3], "layout"], [row[:4] for row in rows]
    text = "A launch takes the first code version all of whose guards hold."
    if on_gpu and any("registers" not in version for version in facts.versions):
        text += " Registers are known where an assembler is installed."
    return f"<h2>Code versions</h2><p>{text}</p>{_table(heads, rows, (4,))}"


def _sizes_text(facts: Facts, sizes: Sizes) -> str:
    """Returns the sizes of a launch's dynamic dims as text."""
    names: dict[str, int] = {}
    for index, arg in enumerate(facts.args):
        if arg["kind"] != "scalar":
            names.update({name: sizes.dim(index, dim) for dim, name in enumerate(arg["dims"])
                          if name and arg["shape"][dim] < 0})  # fmt: skip
    return ", ".join(f"{name} = {value}" for name, value in names.items()) or "no dynamic sizes"


def _launches(facts: Facts, launches: Sequence[Sizes], accesses: Sequence[Access], bandwidth: float) -> str:
    on_gpu = facts.target.startswith("sm_")
    speed = bandwidth or facts.chip.get("bandwidth", 0)
    rows = []
    for sizes in launches:
        grid = plan_grid(sizes, choose_version(sizes)["geometry"])
        read, written = bytes_moved(sizes, list(accesses))
        per_row = (read + written) / grid.rows if grid.rows else 0
        rows.append([
            escape(_sizes_text(facts, sizes)), f"{grid.rows:,}", f"{grid.blocks:,} x {grid.threads}" if on_gpu else "",
            f"{read:,}", f"{written:,}", f"{per_row:,.1f}", f"{(read + written) / speed / 1e3:,.2f}" if speed else "unknown",
        ])  # fmt: skip
    heads = ["sizes", "rows", "blocks x threads" if on_gpu else "", "bytes read", "bytes written", "bytes per row", "us at the roof"]
    if not accesses:
        rows, heads = [row[:3] for row in rows], heads[:3]
    chip = f" for {facts.chip['multiprocessors']} multiprocessors" if on_gpu and facts.chip else ""
    text = f"The grid is that of the first code version for these sizes{chip}, if tensors are aligned and have no gaps. " if on_gpu else ""
    if accesses:
        text += "Bytes: if each element of the arguments that are accessed is moved once. "
        roof = f"{speed:,.0f} GB/s"
        whose = "--bandwidth" if bandwidth else "a common chip of the target; --bandwidth names another"
        text += f"The roof: the time in which memory of {roof} ({whose}) moves them." if speed else "The memory's bandwidth is unknown."
    return f"<h2>Launches</h2><p>{text}</p>{_table(heads, rows, range(1, 7))}"


# -- Proofs and arguments --------------------------------------------------------------------------------------------


# For each question about an argument, the meaning of the answer "proved" (docs/Proofs.md).
_QUESTIONS = {
    "coverage": "every element is written, by some row",
    "one writer": "no two rows write one element, unless all of them write the same value",
    "independence": "no row reads an element that another row writes",
    "written before read": "a row reads only elements that it has written itself",
    "bounds": "each access lies inside its tensor, so that the code checks no index",
}


def _proofs(facts: Facts) -> str:
    if not facts.proofs:
        return ""
    styles = {"proved": "yes", "promised": "part", "unknown": "part", "refuted": "no"}
    rows = []

    def link(place: Mapping[str, Any]) -> str:
        line = place.get("line")
        return f' <a href="#" data-s="{line}">line {line}</a>' if line else ""

    for arg in facts.proofs["args"]:
        for answer in arg["answers"]:
            verdict = f'<span class="{styles[answer["verdict"]]}">{answer["verdict"]}</span>'
            reason = " ".join(answer[key] for key in ("reason", "element") if key in answer)
            rows.append([f"<code>{escape(arg['name'])}</code>", escape(answer["question"]), verdict, escape(reason) + link(answer)])
        for guard in arg.get("guarded", []):
            text = f"the code checks the index of dim {guard['dim']}"
            rows.append([f"<code>{escape(arg['name'])}</code>", "bounds", '<span class="part">guarded</span>', text + link(guard)])
    warnings = "".join(f"<li>{escape(warning['message'])}{link(warning)}</li>" for warning in facts.proofs.get("warnings", []))
    asked = dict.fromkeys(row[1] for row in rows)
    legend = "".join(f"<li><b>{question}</b>: {_QUESTIONS[question]}</li>" for question in _QUESTIONS if question in asked)
    # Puts answers other than "proved" first.
    rows.sort(key=lambda row: ">proved<" in row[2])
    proved = sum(">proved<" in row[2] for row in rows)
    text = "All of it is proved" if proved == len(rows) else f"{proved} of {len(rows)} answers are proved"
    text += ", for all sizes, all scalars and whatever memory holds."
    if proved < len(rows):
        text += " The first rows are not: where an access is guarded, the code checks its index."
    notes = f"<ul>{warnings}</ul>" if warnings else ""
    return f"<h2>Proofs</h2><p>{text}</p><ul>{legend}</ul>{_table(['argument', 'question', 'answer', ''], rows)}{notes}"


# Describes an argument that stands for several tensors, by the argument's kind.
_MANY = {"peers": ["of each rank"], "list": ["each of a list"]}


def _arguments(facts: Facts) -> str:
    rows = []
    for index, arg in enumerate(facts.args):
        if arg["kind"] == "scalar":
            rows.append([f"<code>{escape(arg['name'])}</code>", arg["dtype"], "",
                         f"0 to {escape(arg['at_most'])}" if "at_most" in arg else ""])  # fmt: skip
            continue
        dims = [name if size < 0 else f"{name} = {size}" if name else str(size) for name, size in zip(arg["dims"], arg["shape"])]
        same = [facts.args[b if a == index else a]["name"] for a, b in facts.aliases if index in (a, b)]
        facts_of = [arg["access"], *(["optional"] if arg["optional"] else []), *_MANY.get(arg["kind"], [])]
        facts_of += [f"may be the same tensor as {' or '.join(same)}"] if same else []
        rows.append([f"<code>{escape(arg['name'])}</code>", arg["dtype"], escape(f"[{', '.join(dims)}]"), escape(", ".join(facts_of))])
    return f"<h2>Arguments</h2>{_table(['argument', 'dtype', 'shape', ''], rows)}"
