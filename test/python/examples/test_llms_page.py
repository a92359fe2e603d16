"""Tests that the kernel of docs/llms.txt runs, and that the messages that the page explains are the package's."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sources import load

import mlafix

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "llms.txt").read_text(encoding="utf-8")

# A kernel for each message in the page's table, in the order of the table.
FAULTS = [
    'def k(y: Out[f32, "n D"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        store(y[t], x[t], where=x[t, 0] > 0.0)',
    'def k(y: InOut[f32, "n D"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        y[i32(x[t, 0])] = x[t]',
    'def k(y: Out[f32, "n"], a_lse: In[f32, "n"], b_lse: In[f32, "n"]):\n    for t in grid("n"):\n        y[t] = exp(a_lse[t] - max(a_lse[t], b_lse[t]))',
    'def k(y: Out[f32, "n D"], x: In[f32, "m D"]):\n    for t in grid("n"):\n        y[t] = x[t]',
    'def k(y: Out[f32, "n D"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        y[t] = x[t] + t',
    'def k(y: Out[f32, "n D"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        y[t] = x[t]',
]

def messages() -> list[str]:
    """Returns the first column of the table of messages."""
    table = PAGE.partition("## Errors that matter")[2].partition("##")[0]
    return re.findall(r"^\| (expected [^|]*|got [^|]*) \|", table, re.MULTILINE)


def test_the_kernel_of_the_page_runs(tmp_path: Path) -> None:
    text = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1].rpartition("rms_norm(")[0]
    path = tmp_path / "page.py"
    path.write_text(text)
    scope: dict[str, object] = {}
    exec(compile(text, path, "exec"), scope)  # noqa: S102 (as a reader would)
    x = np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32)
    y, weight = np.full_like(x, np.nan), np.linspace(0.5, 2, 16, dtype=np.float32)
    scope["rms_norm"](y, x, weight, 1e-6)
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(y, want, rtol=1e-5)


@pytest.mark.parametrize(("body", "message"), list(zip(FAULTS, messages(), strict=True)))
def test_the_messages_of_the_page_are_given(tmp_path: Path, body: str, message: str) -> None:
    kernel = load(tmp_path, f"@kernel\n{body}\n").k
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            kernel.report()
            kernel.compile(**{name: 8 for name in kernel.signature["names"] if name == "D"})
            kernel(*([np.ones((2, 8), np.float32)] if "expected an argument" in message else []))
            said = ""
        except mlafix.Error as error:
            said = str(error)
    said += "\n".join(str(one.message) for one in caught)
    assert message in said, said
