"""Tests that pages that explain a kernel have the expected contents, and work in a browser without a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sources import KERNELS
from sources import load

import mlafix
from mlafix import explain
from mlafix.__main__ import main
from mlafix.explain.launches import Grid, Sizes, bytes_moved, choose_version, coalescing, find_accesses, plan_grid
from mlafix.explain.page import guard_text

ROOT = KERNELS.parent
EXAMPLE = ROOT / "examples" / "python" / "merge.py"
BINDINGS = {"H": "16", "D": "128", "T": "bf16"}


def line_of(text: str) -> int:
    """Returns the number of the first line of merge.py with `text`, from merge_attn_states on."""
    lines = EXAMPLE.read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if "def merge_attn_states(" in line)
    return begin + 1 + next(number for number, line in enumerate(lines[begin:]) if text in line)


@pytest.fixture(scope="module")
def facts() -> explain.Facts:
    from mlafix.__main__ import find_kernel

    return explain.facts_of_kernel(find_kernel(f"{EXAMPLE}:merge_attn_states"), BINDINGS, "sm_90")


def test_lines_of_every_stage_name_the_line_they_come_from(facts: explain.Facts) -> None:
    load = line_of("load_state(prefix")
    assert list(facts.stages) == ["mlafix dialect", "rows and scalars", "one thread's program", "PTX"]
    for name, lines in facts.stages.items():
        texts = [line.text for line in lines if line.source == load]
        assert texts, name
        assert "loc(" not in "".join(line.text for line in lines), name
    assert any("mlafix.load_state %prefix" in line.text for line in facts.stages["mlafix dialect"] if line.source == load)
    assert any("ld.global" in line.text for line in facts.stages["PTX"] if line.source == load)
    assert not any("st.global" in line.text for line in facts.stages["PTX"] if line.source == load)


def test_accesses_and_what_a_warp_touches(facts: explain.Facts) -> None:
    accesses = {(access.text, access.is_store): access for access in find_accesses(facts)}
    assert set(accesses) == {("prefix[i, j, :]", False), ("prefix_lse[j, i]", False), ("suffix[i, j, :]", False),
                             ("suffix_lse[j, i]", False), ("out[i, j, :]", True), ("out_lse[j, i]", True)}  # fmt: skip
    sizes, version = Sizes(facts, {"n": 4096}), facts.versions[0]
    assert version["layout"]["lanes"] == 16
    row = coalescing(sizes, accesses["out[i, j, :]", True], version)
    assert row is not None and (row.bytes, row.sectors, row.share) == (512, 16, 1.0)  # two rows of 256 bytes
    lse = coalescing(sizes, accesses["prefix_lse[j, i]", False], version)
    assert lse is not None and (lse.bytes, lse.sectors) == (8, 2)  # the lses of two heads, 4096 elements apart


RAGGED = """
!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
mlafix.kernel @blank(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
    %lens: !ints {mlafix.dims = ["b"], mlafix.access = "read"},
    %cu_seqlens: !ints {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.ragged_forall (%b, %t, %h) in (%cu_seqlens, %n, %H) : !ints where {
    %none = arith.constant 0 : i32
    %len = mlafix.load %lens[%b] : !ints -> i32
    %dead = arith.cmpi sle, %len, %none : i32
    mlafix.yield %dead : i1
  } do {
    %empty = mlafix.identity : !mlafix.state<"D", e>
    mlafix.store_state %empty to %out[%t, %h] : !mlafix.state<"D", e>, !rows
  }
}
"""


def test_rows_of_unknown_indices_are_looked_at_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "blank.mlir").write_text(RAGGED)
    ragged = explain.facts_of_kernel(mlafix.Kernel.load(tmp_path / "blank.mlir"), BINDINGS, "sm_90")
    accesses = {access.text: access for access in find_accesses(ragged)}
    assert set(accesses) == {"cu_seqlens[…]", "lens[…]", "out[…, …, :]"}
    sizes, version = Sizes(ragged, {}), ragged.versions[0]
    row = coalescing(sizes, accesses["out[…, …, :]"], version)
    assert row is not None and (row.bytes, row.sectors) == (256, 8)
    assert coalescing(sizes, accesses["lens[…]"], version) is None
    read, written = bytes_moved(sizes, list(accesses.values()))
    assert (read, written) == (2 * 1024 * 4, 1024 * 16 * 256)


def test_grid_and_bytes_of_a_launch(facts: explain.Facts) -> None:
    sizes = Sizes(facts, {"n": 4096})
    grid = plan_grid(sizes, facts.versions[0]["geometry"])
    assert (grid.rows, grid.threads, grid.blocks) == (65536, 256, 65536 // 16)
    # With least_threads, blocks are halved as long as a multiprocessor has fewer than 32 of them.
    halved = dict(facts.versions[0]["geometry"], least_threads=128)
    assert plan_grid(sizes, halved) == Grid(65536, 65536 // 8, 128)
    # The blocks of a small launch are halved until they have least_threads threads or, if this is more, the threads of
    # one row (here 16).
    small = Sizes(facts, {"n": 1})
    assert plan_grid(small, halved) == Grid(16, 2, 128)
    assert plan_grid(small, dict(halved, least_threads=32)) == Grid(16, 8, 32)
    assert plan_grid(small, dict(halved, least_threads=1)) == Grid(16, 16, 16)
    clustered = dict(facts.versions[0]["geometry"], rows_per_block=1, threads=512, cluster=8)
    assert plan_grid(sizes, clustered) == Grid(65536, 8 * 65536, 512)
    read, written = bytes_moved(sizes, find_accesses(facts))
    assert (read, written) == (2 * (65536 * 256 + 65536 * 4), 65536 * 256 + 65536 * 4)


@pytest.mark.parametrize("batch, splits, blocks, threads", [
    # eight groups of half a warp: with whole warps, fewer than a quarter of the 132 multiprocessors would have a block
    (1, 32, 64, 128),
    (8, 32, 256, 256),  # eight groups of a warp
    (8, 128, 256, 256),  # eight groups, since sixteen would need more threads than the multiprocessors hold
    # one group, since two would need more threads than the multiprocessors hold; the largest block of which two fit on
    # a multiprocessor
    (64, 32, 256, 256),
    # one group, which already needs more threads than the multiprocessors hold; the smallest block
    (512, 32, 4096, 128),
])
def test_grid_of_lane_groups(batch: int, splits: int, blocks: int, threads: int) -> None:
    """plan_grid() computes the grid of a launch with lane groups as the runtime does. The cases are the same as in
    `Runtime/PlanTest.cpp`."""
    kernel = mlafix.Kernel.load(KERNELS / "combine_split_kv.mlir")
    combine = explain.facts_of_kernel(kernel, {"H": "16", "D": "512", "T": "f32", "O": "bf16"}, "sm_90")
    grid = plan_grid(Sizes(combine, {"b": batch, "l": 1, "s": splits}), combine.versions[0]["geometry"])
    assert (grid.blocks, grid.threads) == (blocks, threads)


PROGRAM = """import mlafix
from mlafix.dsl import In, Out, f32, grid, inline


@inline
def half(v):
    return v * 0.5


@mlafix.kernel
def halve(y: Out[f32, "n D"],
          x: In[f32, "n D"]):
    for t in grid("n"):
        if x.shape[0] < 0:
            y[t] = x[t]
        y[t] = half(x[t])
        z = 0.0

if __name__ == "__main__":
    print("not a kernel")
"""


def test_source_is_that_of_the_kernel_alone(tmp_path: Path) -> None:
    (tmp_path / "halves.py").write_text(PROGRAM)
    (tmp_path / "gather.mlir").write_text(GUARDED)

    def shown(kernel: str, bindings: dict[str, str]) -> list[str]:
        from mlafix.__main__ import find_kernel

        page = explain.write_page(explain.facts_of_kernel(find_kernel(str(tmp_path / kernel)), bindings, "x86-64"))
        pane = re.search(r'<div class="code" data-stage="source">(.*?)</div></div>', page)
        assert pane
        return [re.sub("<[^>]*>", "", line)[5:] for line in pane[1].split("</div>")]

    lines = shown("halves.py:halve", {"D": "8"})
    assert lines[0] == "@inline" and lines[-1] == "        z = 0.0"
    lines = shown("gather.mlir", {})
    assert lines[0].startswith("!vec") and lines[-1] == "}"


NARROW = """from mlafix.dsl import In, Out, bf16, f32, grid, kernel


@kernel
def widen(y: Out[f32, "n D"], x: In[bf16, "n D"]):
    for t in grid("n"):
        row = x[t]
        y[t] = row * 2.0
"""


def test_a_narrow_access_is_said_beside_its_line(tmp_path: Path) -> None:
    from mlafix.__main__ import find_kernel

    (tmp_path / "widen.py").write_text(NARROW)
    page = explain.write_page(explain.facts_of_kernel(find_kernel(f"{tmp_path / 'widen.py'}:widen"), {"D": "128"}, "sm_90"))
    advice = "rows of x are moved 8 bytes at a time, where the target has accesses of 16 bytes"
    beside = re.search(r'<div class="l" data-s="7"><b>   7 </b>        row = x\[t\]</div><div class="r costs">(.*?)</div>', page)
    assert beside and advice in beside[1] and "narrow-access" in beside[1]
    load = next(row for row in page.split("<tr>") if "<code>x[i, :]</code>" in row)
    assert 'class="part"' in load and advice in load, "coalesced, and yet narrow"


def test_what_is_not_proved_comes_first(tmp_path: Path, facts: explain.Facts) -> None:
    assert "All of it is proved, for all sizes" in explain.write_page(facts)
    (tmp_path / "gather.mlir").write_text(GUARDED)
    page = explain.write_page(explain.facts_of_kernel(mlafix.Kernel.load(tmp_path / "gather.mlir"), {}, "x86-64"))
    proofs = page.partition("<h2>Proofs</h2>")[2]
    assert re.match(r"<p>\d+ of \d+ answers are proved", proofs) and proofs.index(">unknown<") < proofs.index(">proved<")


def test_stages_and_questions_are_explained(facts: explain.Facts) -> None:
    page = explain.write_page(facts)
    assert all(re.search(f'<button data-stage="{re.escape(explain.page.escape(name))}" title="[^"]+"', page) for name in facts.stages)
    questions = {answer["question"] for arg in facts.proofs["args"] for answer in arg["answers"]}
    assert {"coverage", "one writer", "independence"} <= questions
    assert all(page.count(f"<li><b>{question}</b>: ") == 1 for question in questions)


def test_grid_is_that_of_the_code_version_for_the_sizes(tmp_path: Path) -> None:
    module = load(tmp_path, """
@mlafix.kernel
def doubled(y: Out[f32, "n v<=4096"], x: In[f32, "n v"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0
""")
    bounded = explain.facts_of_kernel(module.doubled, {}, "sm_90")
    launches = [{"n": 65536, "v": 128}, {"n": 65536, "v": 4096}, {"n": 65536, "v": 4095}]
    chosen = [choose_version(Sizes(bounded, given)) for given in launches]
    assert [version["entry"] for version in chosen] == ["doubled_most128_whole_dense", "doubled_whole_dense", "doubled_fast"]
    page = explain.write_page(bounded, launches)
    grids = [plan_grid(Sizes(bounded, given), version["geometry"]) for given, version in zip(launches, chosen)]
    assert len({(grid.blocks, grid.threads) for grid in grids}) == 3
    for given, grid in zip(launches, grids):
        assert f"<td>n = 65536, v = {given['v']}</td><td class=n>65,536</td><td class=n>{grid.blocks:,} x {grid.threads}</td>" in page


def test_page_says_what_is_known(facts: explain.Facts) -> None:
    page = explain.write_page(facts, [{"n": 4096}, {"n": 16}])
    for text in ("merge_attn_states_dense", "rows of out, prefix, suffix at multiples of 16 bytes", "different addresses for out, prefix",
                 "identical strides of", "n = 4096", "n = 16", "coverage", "proved", "4,800 GB/s", "may be the same tensor as prefix or suffix",
                 "lane 3 of warp 0: elements 24 to 31 of row 0, bytes 48 to 63", "<b>"):  # fmt: skip
        assert text in page, text
    microseconds = 65536 * (256 + 4) * 3 / 4800e3
    assert f"{microseconds:,.2f}" in page
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!#)|https?:|@import|url\(", page), "expected a page that needs nothing else"


GUARDED = """
!vec = memref<?xf32, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
mlafix.kernel @gather(
    %out_lse: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %a_lse: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
    %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %table: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out_lse, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %table[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %a = mlafix.load %a_lse[%i] : !vec -> f32
    %b = mlafix.load %b_lse[%t] : !vec -> f32
    %m = arith.maximumf %a, %b : f32
    %x = arith.subf %a, %m : f32
    %p = math.exp %x : f32
    mlafix.store %p, %out_lse[%t] : f32, !vec
  }
}
"""


def test_every_kind_of_guard_has_a_sentence() -> None:
    table = (ROOT / "include/mlafix/Guards.def").read_text(encoding="utf-8")
    guards = re.findall(r'^MLAFIX_GUARD\(\w+, "(\w+)", (\w+), "(\w*)"', table, re.MULTILINE)
    assert len(guards) == table.count("\nMLAFIX_GUARD(")
    args = [{"name": name, "dims": ["n", ""]} for name in ("a", "b")]
    for kind, about, number in guards:
        guard: dict[str, Any] = {"kind": kind, **{"None": {}, "Dim": {"arg": 1, "dim": 1}}.get(about, {"args": [0, 1]})}
        text = guard_text({**guard, number: 64} if number else guard, args)
        assert "{" not in text and ("64" in text or not number) and (about == "None" or re.search(r"\bb\b", text)), f"{kind}: {text}"


def test_guarded_accesses_and_warnings(tmp_path: Path) -> None:
    (tmp_path / "gather.mlir").write_text(GUARDED)
    page = explain.write_page(explain.facts_of_kernel(mlafix.Kernel.load(tmp_path / "gather.mlir"), {}, "x86-64"))
    assert 'the code checks the index of dim 0 <a href="#" data-s="12">line 12</a>' in page
    assert "-inf - -inf" in page and 'data-s="15">line 15</a></li>' in page


def test_source_that_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "gather.mlir"
    file.write_text(GUARDED)
    kernel = mlafix.Kernel.load(file)
    file.unlink()
    facts = explain.facts_of_kernel(kernel, {}, "x86-64")
    assert not facts.source and any("gather.mlir, is not at hand" in note for note in facts.notes)
    assert "one row's program" in facts.stages and "Code versions" in explain.write_page(facts)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "cpu"])
def test_cpu_targets(target: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["explain", f"{EXAMPLE}:merge_attn_states", "--bind", "H=2,D=64,T=f32", "--target", target, "-o", str(page)]) == 0
    text = page.read_text()
    assert "One lane goes through a row" in text and "LLVM dialect" in text and "memory's bandwidth is unknown" in text
    assert "bytes per row" in text


@pytest.mark.parametrize("name", sorted(path.stem for path in KERNELS.rglob("*.mlir"))[::3])
def test_kernels_of_the_library(name: str, tmp_path: Path) -> None:
    signature = mlafix.library.kernel(name).signature
    values = {"H": "4", "D": "64", "T": "bf16", "L": "i32", "I": "i32"}
    bound = ",".join(f"{key}={values.get(key, '8')}" for key, default in signature["names"].items() if default is None)
    page = tmp_path / "page.html"
    assert main(["explain", name, *(["--bind", bound] if bound else []), "--target", "sm_90", "-o", str(page)]) == 0
    assert "Code versions" in page.read_text()


def test_unit_file_as_far_as_it_holds_the_facts(tmp_path: Path) -> None:
    unit, page = tmp_path / "merge.mlafix", tmp_path / "page.html"
    arguments = ["compile", f"{EXAMPLE}:merge_attn_states", "--bind", "H=16,D=128,T=bf16", "--target", "sm_90,x86-64", "-o", str(unit)]
    assert main(arguments) == 0
    assert main(["explain", str(unit), "--target", "sm_90", "-o", str(page)]) == 0
    text = page.read_text()
    assert "merge_attn_states_dense" in text and ".visible .entry" in text and "does not hold the kernel" in text
    assert "one writer" in text and '>line ' not in text
    assert main(["explain", f"{unit}:merge_attn_states", "--target", "x86-64", "-o", str(page)]) == 0


def test_unit_file_of_several_specialisations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit, page = tmp_path / "merge.mlafix", tmp_path / "page.html"
    compiled = ["compile", f"{EXAMPLE}:merge_attn_states", "--bind", "H=1,D=64,T=f32", "--bind", "H=2,D=64,T=f32", "--target", "cpu", "-o", str(unit)]
    assert main(compiled) == 0
    explained = ["explain", str(unit), "--target", "cpu", "-o", str(page)]
    held = "merge_attn_states for B=e, D=64, H=1, T=f32 and merge_attn_states for B=e, D=64, H=2, T=f32"
    for more, got in [([], "2 that fit"), (["--bind", "H=3"], "none that fits")]:
        assert main([*explained, *more]) == 1
        assert f"expected UNIT.mlafix:KERNEL and --bind to choose one kernel of the unit, which holds {held}; got {got}" in capsys.readouterr().err
    assert main([*explained, "--bind", "H=2"]) == 0 and "H = 2" in page.read_text()
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "what the unit holds of one specialisation" in said and "or cpu for this machine's level" in said and "those that choose one" in said


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit = tmp_path / "no.mlafix"
    unit.write_bytes(b"no unit")
    kernel = tmp_path / "blank.mlir"
    kernel.write_text(RAGGED)
    output = ["-o", str(tmp_path / "page.html")]
    for arguments, message in [
        ([str(unit), "--target", "sm_90"], f"{unit}: expected a unit, which begins with MLAFIX"),
        ([str(kernel), "--bind", "H=1,D=64,T=f32", "--target", "sm_91"], "expected a target out of"),
        ([str(kernel), "--bind", "D", "--target", "sm_90"], "--bind: expected NAME=VALUE"),
        ([str(kernel), "--bind", "H=1,D=64,T=f32", "--target", "sm_90", "--sizes", "n=many"], "--sizes: expected NAME=NUMBER"),
        ([str(kernel), "--bind", "H=1,D=64,T=f32", "--target", "sm_90", "--sizes", "q=3"], 'argument "sizes": expected one of '),
    ]:
        assert main(["explain", *arguments, *output]) == 1
        assert message in capsys.readouterr().err


PROBE = """<script>
const seen = {};
document.querySelectorAll('.l[data-s]').forEach(line => {
  if (!seen.done && line.dataset.s === 'LINE') {
    line.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
    document.querySelectorAll('.pane').forEach((pane, i) => { seen['pane' + i] = pane.querySelectorAll('.l.on').length; });
    seen.others = [...document.querySelectorAll('.l.on')].filter(other => other.dataset.s !== 'LINE').length;
    seen.done = true;
  }
});
document.querySelectorAll('button')[1].click();
seen.stages = [...document.querySelectorAll('.pane')[1].querySelectorAll('.code')].map(code => code.hidden);
seen.scrolled = [...document.querySelectorAll('.pane')].map(pane => pane.querySelector('.code:not([hidden])').scrollTop > 0);
seen.wraps = [...document.querySelectorAll('.code:not([hidden])')].every(code => code.scrollWidth <= code.clientWidth);
const light = color => color.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
seen.dark = light(getComputedStyle(document.body).backgroundColor) < light(getComputedStyle(document.body).color);
seen.drawn = document.querySelector('svg.layout').getBoundingClientRect().height > 50;
seen.wide = document.documentElement.scrollWidth <= window.innerWidth;
document.title = JSON.stringify(seen);
</script></body>"""


@pytest.mark.parametrize("width, dark", [(1500, False), (400, True)], ids=["desk", "narrow and dark"])
def test_the_page_works_in_a_browser(facts: explain.Facts, width: int, dark: bool, tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("needs Debian's chromium, and none is on the PATH")
    load = line_of("load_state(prefix")
    page = tmp_path / "page.html"
    page.write_text(explain.write_page(facts).replace("</body>", PROBE.replace("LINE", str(load))))
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", f"--window-size={width},1000",
               f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=5000", "--dump-dom", page.as_uri()]  # fmt: skip
    # Python may run with preloaded libraries, as under a sanitizer. The browser must not load them.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    dom = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240, env=environment).stdout
    seen: dict[str, Any] = json.loads(dom[dom.index("<title>") + 7 : dom.index("</title>")])
    assert seen["pane0"] == 1 and seen["pane1"] > 0 and seen["pane2"] > 0 and seen["others"] == 0
    assert seen["stages"] == [True, False, True]
    assert seen["scrolled"] == [False, True, True], "expected panes that open on the kernel's body"
    assert seen["drawn"] and seen["wide"] and seen["wraps"] and seen["dark"] == dark


def test_what_a_tensor_indexes_counts_by_rows_and_every_access_is_listed(tmp_path: Path) -> None:
    """If a tensor contains indices into another one, only the accessed rows of the latter count as bytes moved.
    Accesses by load(into=) are listed, too."""
    module = load(tmp_path, """
@mlafix.kernel
def append(cache: InOut[bf16, "slots D"], x: In[bf16, "n D"], slot_of: In[i32, "n"], c: In[f32, "n Z"]):
    for t in grid("n"):
        cache[slot_of[t]] = f32(x[t]) + load(c[t], into="D", first=64)
""")
    facts = explain.facts_of_kernel(module.append, {"D": "128", "Z": "64"}, "sm_90")
    accesses = find_accesses(facts)
    assert "c[i, :]" in {access.text for access in accesses}
    assert bytes_moved(Sizes(facts, {"n": 64, "slots": 4096}), accesses) == (64 * (256 + 4 + 256), 64 * 256)
