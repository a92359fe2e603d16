"""Makes small models with random weights. The weights are scaled so that a wrong merge of attention states changes the
generated tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMMON = {"vocab_size": 4096, "num_hidden_layers": 2, "hidden_act": "silu", "max_position_embeddings": 65536, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
          "rope_scaling": None, "attention_bias": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 1}


def config(kind: str, heads: int, hidden: int = 1024) -> dict[str, Any]:
    """Returns the configuration of a DeepSeek-V2 with MLA and dense layers, or of a Llama with GQA."""
    sizes = {"hidden_size": hidden, "intermediate_size": 2 * hidden, "num_attention_heads": heads}
    if kind == "gqa":
        return {**COMMON, **sizes, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_key_value_heads": max(heads // 4, 1), "head_dim": 128,
                "mlp_bias": False}  # fmt: skip
    return {**COMMON, **sizes, "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "num_key_value_heads": heads,
            "moe_intermediate_size": 256, "n_shared_experts": 1, "n_routed_experts": 2, "num_experts_per_tok": 1, "first_k_dense_replace": 2,
            "moe_layer_freq": 1, "n_group": 1, "topk_group": 1, "topk_method": "greedy", "scoring_func": "softmax", "norm_topk_prob": False,
            "routed_scaling_factor": 1.0, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}


def matrices(made: dict[str, Any]) -> Iterator[tuple[str, int, int, float]]:
    """Yields (name, rows, columns, gain) of each weight matrix. The elements of a matrix get the standard deviation
    gain / sqrt(columns). Norms are not included."""
    hidden, heads = made["hidden_size"], made["num_attention_heads"]
    yield "model.embed_tokens", made["vocab_size"], hidden, math.sqrt(hidden)
    yield "lm_head", made["vocab_size"], hidden, 2.0
    for layer in range(made["num_hidden_layers"]):
        attention, mlp = f"model.layers.{layer}.self_attn", f"model.layers.{layer}.mlp"
        if made["model_type"] == "llama":
            keys = made["num_key_value_heads"] * 128
            yield from ((f"{attention}.{name}_proj", rows, hidden, gain) for name, rows, gain in (("q", heads * 128, 2.0), ("k", keys, 1.0), ("v", keys, 1.0)))
        else:
            yield f"{attention}.q_proj", heads * 192, hidden, 2.0
            yield f"{attention}.kv_a_proj_with_mqa", 576, hidden, 1.0
            yield f"{attention}.kv_b_proj", heads * 256, 512, 1.5
        yield f"{attention}.o_proj", hidden, heads * 128, 4.0
        yield from ((f"{mlp}.{name}_proj", 2 * hidden, hidden, 1.0) for name in ("gate", "up"))
        yield f"{mlp}.down_proj", hidden, 2 * hidden, 1.0


def norms(made: dict[str, Any]) -> Iterator[tuple[str, int]]:
    yield "model.norm", made["hidden_size"]
    for layer in range(made["num_hidden_layers"]):
        yield from ((f"model.layers.{layer}.{name}", made["hidden_size"]) for name in ("input_layernorm", "post_attention_layernorm"))
        if made["model_type"] != "llama":
            yield f"model.layers.{layer}.self_attn.kv_a_layernorm", 512


def write(folder: Path, kind: str, heads: int) -> None:
    """Writes the model's config.json and model.safetensors. Their bytes are the same in every run."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    made = config(kind, heads)
    generator = torch.Generator().manual_seed(1234)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    weights = {f"{name}.weight": (random(rows, columns) * gain / math.sqrt(columns)).bfloat16() for name, rows, columns, gain in matrices(made)}
    weights |= {f"{name}.weight": (1 + 0.1 * random(size)).bfloat16() for name, size in norms(made)}
    (folder / "config.json").write_text(json.dumps(made, indent=1), encoding="utf-8")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
