"""Adapts onnxruntime's Attention of opset 24 on the CPU, with lengths of keys. Builds a model of one node for each
combination of scale, causal mask and softcap."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper

from ..cases import Adapter


@cache
def session(scale: float, causal: bool, softcap: float) -> Any:
    """Returns a session for one Attention node. The inputs are q [B, H, Lq, D], k and v [B, Hk, Lk, D], and lengths [B]
    i64."""
    names, kinds = ["q", "k", "v", "lengths"], [TensorProto.FLOAT] * 3 + [TensorProto.INT64]
    node = helper.make_node("Attention", ["q", "k", "v", "", "", "", "lengths"], ["out"], scale=scale, is_causal=int(causal), softcap=softcap)
    inputs = [helper.make_tensor_value_info(name, kind, [None] * (1 if name == "lengths" else 4)) for name, kind in zip(names, kinds)]
    graph = helper.make_graph([node], "attention", inputs, [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None] * 4)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor, softcap: float = 0.0) -> torch.Tensor:
    arrays = {name: np.ascontiguousarray(x.transpose(1, 2).numpy()) for name, x in (("q", q), ("k", k), ("v", v))}
    (out,) = session(scale, causal, softcap).run(None, {**arrays, "lengths": seq_lens_k.numpy().astype(np.int64)})
    return torch.from_numpy(out).transpose(1, 2)


ADAPTERS = [Adapter(attention, "dense", name="onnxruntime Attention-24", takes=("seq_lens_k", "softcap"), returns_lse=False, graph_safe=False)]
