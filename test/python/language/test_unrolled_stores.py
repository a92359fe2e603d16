"""Tests that coverage is proved for many stores to one output: unrolled elements, slices, chains of branches, and
indices with // and %."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sources import load

COUNT = 48
MANY = range(COUNT)
Lines = Callable[[range], list[str]]


def chain(tests: list[str], bodies: list[str]) -> list[str]:
    """Returns the lines of "if tests[0]: bodies[0], elif tests[1]: bodies[1], …, else: the last body"."""
    lines = [f"{'elif' if i else 'if'} {test}:\n    {body}" for i, (test, body) in enumerate(zip(tests, bodies, strict=False))]
    return [*lines, f"else:\n    {bodies[-1]}"]


# For each case: the dims of the output, a promise about sizes, and the kernel's lines for a range of numbers. Only the
# lines for all 48 numbers write every element.
UNROLLED: dict[str, tuple[str, str, Lines]] = {
    "elements": ("n k=48", "", lambda r: [f"y[t, {i}] = x[t]" for i in r]),
    "two dims of one number": ("n p=6 q=8", "", lambda r: [f"y[t, {i} // 8, {i} % 8] = x[t]" for i in r]),
    "elements of a row of four rows": ("m k=48 q=4", "m * 4 == n", lambda r: [f"y[t // 4, {i}, t % 4] = x[t]" for i in r]),
    "three digits": ("m a=2 k=48 b=3", "m * 6 == n", lambda r: [f"y[t // 6, t // 3 % 2, {i}, t % 3] = x[t]" for i in r]),
    "turned elements": ("n k=48", "", lambda r: [f"y[t, (t + {i}) % 48] = x[t]" for i in r]),
    "turned by seven": ("n k=48", "", lambda r: [f"y[t, (7 * t + {i}) % 48] = x[t]" for i in r]),
    "one dim": ("m", "m == n * 48", lambda r: [f"y[t * 48 + {i}] = x[t]" for i in r]),
    "digits of one dim": ("m q=5", "m * 5 == n * 48", lambda r: [f"y[(t * 48 + {i}) // 5, (t * 48 + {i}) % 5] = x[t]" for i in r]),
    "steps of a loop": ("n l", "", lambda r: ["for i in range(0, shape('l'), 48):", *(f"    y[t, i + {j}] = x[t]" for j in r)]),
    "a loop and rows": ("n r k=48", "", lambda r: ["for i in range(shape('r')):", *(f"    y[t, i, {j}] = x[t]" for j in r)]),
    "slices": ("n D=192", "", lambda r: [f"y[t, {4 * i}:{4 * i + 4}] = 0.0" for i in r]),
    "slices of rows of four": ("m q=4 D=192", "m * 4 == n", lambda r: [f"y[t // 4, t % 4, {4 * i}:{4 * i + 4}] = 0.0" for i in r]),
    "loops over pieces": ("n D=192", "", lambda r: [f"for g in range(4):\n    y[t, {4 * i} + g] = x[t]" for i in r]),
    "a chain of remainders": ("m k=48", "m * 48 == n", lambda r: chain([f"t % 48 == {i}" for i in MANY[:-1]], [f"y[t // 48, {i if i in r else 0}] = x[t]" for i in MANY])),
    "branches of remainders": ("m k=48", "m * 48 == n", lambda r: [f"if t % 48 == {i}:\n    y[t // 48, {i}] = x[t]" for i in r]),
    "a predicate and its negation": ("n k=48", "", lambda r: [f"p = f[t] > {i}\nstore(y[t, {i}], x[t], where=p)\nstore(y[t, {i}], 0.0, where=not p)" for i in r]),
    "numbers read twice": ("n k=48", "", lambda r: [f"store(y[t, {i}], x[t], where=f[t] > {i})\nstore(y[t, {i}], 0.0, where=f[t] <= {i})" for i in r]),
    "branches of rows of four": ("m k=48 q=4", "m * 4 == n", lambda r: [f"if f[t] > {i}:\n    y[t // 4, {i}, t % 4] = x[t]\nelse:\n    y[t // 4, {i}, t % 4] = 0.0" for i in r]),
    "a remainder and its complement": ("n k=48", "", lambda r: [f"store(y[t, {i}], x[t], where=t % 48 >= {i})\nstore(y[t, {i}], 0.0, where=t % 48 < {i})" for i in r]),
    "two stores in a chain": (
        "n k=2",
        "",
        lambda r: chain([f"f[t] == {i}" for i in MANY[:-1]], [f"y[t, 0] = x[t]\n    y[t, {1 if i in r else 0}] = 1.0" for i in MANY]),
    ),
    "a chain over rows of four": (
        "m k=4",
        "m * 4 == n",
        lambda r: chain([f"f[t] == {i}" for i in MANY[:-1]], ["y[t // 4, t % 4] = x[t]" if i in r else "y[t // 4, 0] = x[t]" for i in MANY]),
    ),
}


@pytest.mark.parametrize("name", UNROLLED)
@pytest.mark.parametrize("missing", [False, True])
def test_unrolled_stores_are_followed(tmp_path: Path, name: str, missing: bool) -> None:
    dims, promise, lines = UNROLLED[name]
    numbers = range(COUNT - 1) if missing else MANY
    text = "\n".join(lines(numbers)).replace("\n", "\n        ")
    for size in ("m", "n"):
        promise = promise.replace(size, f"shape('{size}')")
    head = f"@mlafix.kernel(allow={{'bounds', 'races'}})\ndef k(y: Out[f32, '{dims}'], x: In[f32, 'n'], f: In[i32, 'n']):\n"
    promised = f"    assume({promise})\n" if promise else ""
    module = load(tmp_path, f"{head}{promised}    for t in grid('n'):\n        {text}\n")
    answers = {answer["question"]: answer for answer in module.k.report()["args"][0]["answers"]}
    assert answers["coverage"]["verdict"] == ("refuted" if missing else "proved"), answers["coverage"]
