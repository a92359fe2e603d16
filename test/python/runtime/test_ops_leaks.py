"""100000 calls of the public functions do not leak memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_leaks import CALLS, assert_leaves_nothing

import mlafix
from mlafix import ops
from mlafix.compat import vllm


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_functions_right_and_wrong(kind: str) -> None:
    def make(*shape: int) -> Any:
        if kind == "numpy":
            return np.ones(shape, np.float32)
        torch = pytest.importorskip("torch")
        return torch.ones(shape)

    v, s, lse = make(1, 4, 64), make(1, 4), make(4, 1)

    def work() -> None:
        ops.merge_attn_states(v, lse, v, lse)
        ops.merge_states_list([v, v], [s, s])
        vllm.merge_attn_states(v, v, lse, v, lse)
        try:
            vllm.merge_attn_states(v, v, s, v, lse)
        except mlafix.ArgumentError:
            pass

    assert_leaves_nothing(work, CALLS // 4)
