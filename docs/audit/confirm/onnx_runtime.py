"""What the card of onnxruntime's Attention of opset 24 says, with onnxruntime, onnx and numpy alone. Exits with status 1 while any of it is so."""

import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

node = helper.make_node("Attention", ["q", "k", "v", "", "", "", "lengths"], ["out"])
kinds = {"q": TensorProto.FLOAT, "k": TensorProto.FLOAT, "v": TensorProto.FLOAT, "lengths": TensorProto.INT64}
inputs = [helper.make_tensor_value_info(name, kind, [None] * (1 if name == "lengths" else 4)) for name, kind in kinds.items()]
graph = helper.make_graph([node], "attention", inputs, [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None] * 4)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def attend(values, length):
    """One query of zeros and keys of zeros: the mean of the values that it sees."""
    k = np.zeros((1, 1, len(values), 4), np.float32)
    v = np.broadcast_to(np.asarray(values, np.float32)[None, None, :, None], k.shape)
    return float(session.run(None, {"q": np.zeros((1, 1, 1, 4), np.float32), "k": k, "v": np.ascontiguousarray(v), "lengths": np.array([length])})[0][0, 0, 0, 0])


wrong = 0
for what, expected, got in (("two keys", 6.0, attend([5, 7], 2)), ("a sequence of length 0", 0.0, attend([5, 7], 0)),
                            ("one key; NaN behind the length", 5.0, np.nan_to_num(attend([5, np.nan], 1), nan=-1.0))):
    wrong += expected != got
    print(f"{'ok   ' if expected == got else 'WRONG'} {what}: expected {expected}, got {got}")
sys.exit(wrong > 0)
