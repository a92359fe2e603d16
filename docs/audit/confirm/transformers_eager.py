"""What the cards of transformers' attention functions say, with transformers and torch alone. Exits with status 1 while any of it is so."""

import sys
from types import SimpleNamespace

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as gpt_oss
from transformers.models.llama.modeling_llama import eager_attention_forward as llama

wrong, LEAST = 0, torch.finfo(torch.float32).min
module = SimpleNamespace(num_key_value_groups=1, training=False, is_causal=False, sinks=torch.full((1,), LEAST))


def check(what: str, expected: float, got: float) -> None:
    global wrong
    wrong += expected != got
    print(f"{'ok   ' if expected == got else 'WRONG'} {what}: expected {expected}, got {got}")


def attend(function, values, seen):
    """One query of zeros and keys of zeros: the mean of the values that it sees."""
    q, k = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, len(values), 4)
    v = torch.tensor(values)[None, None, :, None].expand_as(k)
    seen = torch.tensor(seen)[None, None, None]
    mask = seen if function is sdpa_attention_forward else torch.where(seen, 0.0, LEAST)
    return float(function(module, q, k, v, mask, scaling=1.0)[0].flatten()[0].nan_to_num(-1.0))


for name, function in (("eager (Llama)", llama), ("eager (GPT-OSS)", gpt_oss), ("sdpa", sdpa_attention_forward)):
    check(f"{name}: two keys", 6.0, attend(function, [5.0, 7.0], [True, True]))
    check(f"{name}: no key is seen", 0.0, attend(function, [5.0, 7.0], [False, False]))
    check(f"{name}: one key is seen; the value of the other is NaN", 5.0, attend(function, [5.0, float("nan")], [True, False]))
sys.exit(wrong > 0)
