"""Tests proofs about stores that are hard to prove: stores in every branch, stores of slices that a row may not have,
and stores to slots of a cache."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sources import load

import mlafix


def written(tmp_path: Path, arguments: str, lines: list[str], promise: str = "") -> ModuleType:
    """Returns a module with a kernel whose rows execute `lines`."""
    body = "".join(f"        {line}\n" for line in lines)
    return load(tmp_path, f"@mlafix.kernel(allow={{'bounds', 'races'}})\ndef k({arguments}):\n{promise}    for t in grid('n'):\n{body}")


def verdicts(module: ModuleType) -> dict[tuple[str, str], str]:
    return {(arg["name"], answer["question"]): answer["verdict"] for arg in module.k.report()["args"] for answer in arg["answers"]}


@pytest.mark.parametrize("count", [1, 5, 16])
def test_a_chain_of_branches_writes_each_row(tmp_path, count):
    lines = []
    for i in range(count):
        lines += [f"{'elif' if i else 'if'} f[t] == {i}:", f"    y[t] = x[t] * {i}.5"]
    module = written(tmp_path, "y: Out[f32, 'n D'], x: In[f32, 'n D'], f: In[i32, 'n']", [*lines, "else:", "    y[t] = 0.0"])
    x, y = np.ones((count + 1, 4), np.float32), np.full((count + 1, 4), 7, np.float32)
    module.k(y, x, np.arange(count + 1, dtype=np.int32))
    assert y[:, 0].tolist() == [i + 0.5 for i in range(count)] + [0]


def test_a_chain_of_branches_that_leaves_one_out_is_refused(tmp_path):
    lines = [line for i in range(8) for line in (f"{'elif' if i else 'if'} f[t] == {i}:", "    y[t] = x[t]" if i != 5 else "    z[t] = 1.0")]
    arguments = "y: Out[f32, 'n D'], z: InOut[f32, 'n'], x: In[f32, 'n D'], f: In[i32, 'n']"
    module = written(tmp_path, arguments, [*lines, "else:", "    y[t] = 0.0"])
    with pytest.raises(mlafix.CompileError, match="expected every element of 'y' to be written"):
        module.k.compile("cpu", D=4)


@pytest.mark.parametrize("count", [4, 8, 20])
@pytest.mark.parametrize("output", ["Out[f32, 'n D'].fill(2.0)", "Out[f32, 'n D']"])
def test_a_predicate_and_its_negation_write_each_row(tmp_path, count, output):
    test = " or ".join(f"f[t] == {2 * i}" for i in range(count))
    lines = [f"p = {test}", "store(y[t], x[t], where=p)"] + (["store(y[t], 2.0, where=not p)"] if "fill" not in output else [])
    module = written(tmp_path, f"y: {output}, x: In[f32, 'n D'], f: In[i32, 'n']", lines)
    x, y = np.ones((6, 4), np.float32), np.full((6, 4), 7, np.float32)
    module.k(y, x, np.arange(6, dtype=np.int32))
    assert y[:, 3].tolist() == [1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize(
    ("promise", "lines"),
    [
        ("    assume(shape('l') % 2 == 0)\n", ["for i in range(shape('l') // 2):", "    y[t, i * 2] = 1.0", "    y[t, i * 2 + 1] = 2.0"]),
        ("", ["for i in range(0, shape('l'), 2):", "    y[t, i] = 1.0", "    y[t, i + 1] = 2.0"]),
        ("", ["for i in range(3, shape('l'), 2):", "    y[t, i] = 2.0", "    y[t, i - 1] = 1.0", "for i in range(shape('l')):", "    y[t, i] = 1.0 + f32(i % 2)"]),
    ],
)
def test_pairs_of_elements_write_a_row(tmp_path, promise, lines):
    module = written(tmp_path, "y: Out[f32, 'n l'], x: In[f32, 'n']", lines, promise)
    assert verdicts(module)["y", "coverage"] == "proved"
    for length in (0, 2, 6, *(() if promise else (1, 5))):
        y = np.full((2, length), 7, np.float32)
        module.k(y, np.ones(2, np.float32))
        assert y.tolist() == [[1 + i % 2 for i in range(length)]] * 2


def test_pairs_of_a_row_of_any_length_leave_one_out(tmp_path):
    lines = ["for i in range(shape('l') // 2):", "    y[t, i * 2] = 1.0", "    y[t, i * 2 + 1] = 2.0"]
    with pytest.raises(mlafix.CompileError, match="got no store to y"):
        written(tmp_path, "y: Out[f32, 'n l'], x: In[f32, 'n']", lines).k.compile("cpu")


SLOTS = "cache: InOut[f32, 'b s D'], x: In[f32, 'n D'], slots: In[i32, 'n']"


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        (["slot, size = slots[t], i32(shape('s'))", "if slot >= 0:", "    cache[slot // size, slot % size] = x[t]"], "promised"),
        # A slot below 0 (padding) gives an index below 0, so its row is not stored.
        (["cache[slots[t] // shape('s'), slots[t] % shape('s')] = x[t]"], "promised"),
        # Without `if slot >= 0`, the i32 `slot` may be below 0.
        (["slot, size = slots[t], i32(shape('s'))", "cache[slot // size, slot % size] = x[t]"], "unknown"),
        (["slot, size = slots[t], i32(shape('s'))", "if slot >= 0:", "    cache[slot // size, slot % (size + 1)] = x[t]"], "unknown"),
        (["slot, size = slots[t], i32(t)", "if slot >= 0:", "    cache[slot // size, slot % size] = x[t]"], "unknown"),
        (["if slots[t] >= 0:", "    cache[slots[t] // shape('s'), (slots[t] + 1) % shape('s')] = x[t]"], "unknown"),
    ],
)
def test_slots_of_pages_whose_size_the_launch_knows(tmp_path, lines, verdict):
    module = written(tmp_path, SLOTS, lines, "    distinct(slots)\n")
    assert verdicts(module)["cache", "one writer"] == verdict


def test_slots_of_pages_are_stored_where_they_are(tmp_path):
    module = written(tmp_path, SLOTS, ["cache[slots[t] // shape('s'), slots[t] % shape('s')] = x[t]"], "    distinct(slots)\n")
    cache, slots = np.zeros((3, 5, 2), np.float32), np.array([7, -1, 0, 14, -1, 99], np.int32)
    module.k(cache, np.arange(12, dtype=np.float32).reshape(6, 2) + 1, slots)
    expected = np.zeros((15, 2), np.float32)
    expected[[7, 0, 14]] = [[1, 2], [5, 6], [7, 8]]
    assert (cache.reshape(15, 2) == expected).all()


SHORTER = """
@mlafix.kernel(allow={"bounds"})
def put(y: InOut[f32, "n D"], x: In[f32, "n L=16"]):
    for t in grid("n"):
        y[t, 0:16] = x[t]


@mlafix.kernel(allow={"bounds"})
def get(y: Out[f32, "n L=16"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t, 0:16]


@mlafix.kernel(bounds="prove")
def proved(y: InOut[f32, "n D"], x: In[f32, "n L=16"]):
    for t in grid("n"):
        y[t, 0:16] = x[t]
"""


def test_rows_of_a_size_left_to_the_launch_may_be_shorter_than_a_slice(tmp_path):
    module = load(tmp_path, SHORTER)

    def saved(name: str) -> mlafix.Kernel:
        path = tmp_path / f"{name}.mlafix"
        getattr(module, name).save(path, "cpu", D="any")
        return mlafix.Unit.load(path)[name]

    memory = np.full(64, 77, np.float32)
    saved("put")(memory[:16].reshape(2, 8), np.ones((2, 16), np.float32))
    assert (memory == 77).all()
    y = np.zeros((2, 16), np.float32)
    saved("get")(y, memory[:16].reshape(2, 8))
    assert not y.any()
    with pytest.raises(mlafix.CompileError, match="expected every access of 'y' to be in bounds"):
        saved("proved")
    assert module.proved.compile("cpu", D=16)


def test_a_slice_that_a_row_may_not_have_does_not_cover_it(tmp_path):
    module = written(tmp_path, "y: Out[f32, 'n v<=16'], x: In[f32, 'n v']", ["y[t, :16] = 0.0"])
    with pytest.raises(mlafix.CompileError, match="expected every element of 'y' to be written, got no store to"):
        module.k.compile("cpu")
    module = written(tmp_path, "y: Out[f32, 'n v<=16'], x: In[f32, 'n v']", ["y[t, :8] = x[t, :8]", "y[t, 8:16] = 1.0"], "    assume(shape('v') >= 8)\n")
    with pytest.raises(mlafix.CompileError, match="got no store to y"):
        module.k.compile("cpu")
    module = written(tmp_path, "y: Out[f32, 'n v<=16'], x: In[f32, 'n v']", ["y[t, :16] = 2.0"], "    assume(shape('v') >= 16)\n")
    y = np.zeros((2, 16), np.float32)
    module.k(y, y.copy())
    assert (y == 2).all()


@pytest.mark.parametrize(("dims", "at"), [("m", "y[0]"), ("m L=16", "y[0]"), ("m L=16", "y[0, :9]")])
def test_rows_may_write_one_number_to_one_place(tmp_path, dims, at):
    lines = [f"store({at}, 0.0, where=t == 0)", f"store({at}, 0.0, where=t == 1)"]
    assert verdicts(written(tmp_path, f"y: InOut[f32, '{dims}'], x: In[f32, 'n']", lines))["y", "one writer"] == "proved"
    lines[1] = lines[1].replace("0.0", "-0.0")
    assert verdicts(written(tmp_path, f"y: InOut[f32, '{dims}'], x: In[f32, 'n']", lines))["y", "one writer"] == "refuted"


REMAINDERS = [
    "y[" + " + ".join(f"t % {2 * j + 3}" for j in range(8)) + "] = x[t]",
    "y[" + " + ".join(f"t // {2 * j + 3}" for j in range(8)) + "] = x[t]",
]


@pytest.mark.parametrize("line", REMAINDERS)
def test_a_question_of_many_divisions_ends(tmp_path, line):
    module = written(tmp_path, "y: InOut[f32, 'm D'], x: In[f32, 'n D']", [line])
    # Some pairs of rows write the same element, so "proved" would be wrong.
    assert verdicts(module)["y", "one writer"] in ("unknown", "refuted")


def test_a_question_of_a_chain_of_divisions_ends(tmp_path):
    lines = ["i = t", *(f"i = (i * 3 + {j}) // 2 % 100003" for j in range(12)), "y[t] = x[i]"]
    module = written(tmp_path, "y: Out[f32, 'n D'], x: In[f32, 'n D']", lines)
    assert verdicts(module)["x", "bounds"] in ("unknown", "refuted")
