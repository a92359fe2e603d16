"""Lists public bug reports that resemble findings: reports for each check, and reports for kinds of faults."""

from __future__ import annotations

OF_CHECK: dict[str, tuple[str, ...]] = {
    "A0": (),
    "A1": ("flashinfer-ai/flashinfer#2409", "flashinfer-ai/flashinfer#3047", "flashinfer-ai/flashinfer#4975", "sgl-project/sglang#22291",
           "vllm-project/vllm#49294"),  # fmt: skip
    "A2": ("pytorch/pytorch#134650", "vllm-project/vllm#48364", "vllm-project/vllm#53628"),
    "A3": ("vllm-project/vllm#57136", "vllm-project/vllm#37442", "vllm-project/vllm#38359", "vllm-project/vllm#41873",
           "NVIDIA/TransformerEngine#2898"),  # fmt: skip
    "A4": ("vllm-project/vllm#53628", "vllm-project/vllm#35219", "flashinfer-ai/flashinfer#3057", "flashinfer-ai/flashinfer#2409"),
    "A5": ("flashinfer-ai/flashinfer#4485", "vllm-project/vllm#52796", "vllm-project/vllm#57012", "sgl-project/sglang#40903",
           "pytorch/pytorch#181645"),  # fmt: skip
    "A6": ("flashinfer-ai/flashinfer#4267", "flashinfer-ai/flashinfer#4401", "vllm-project/vllm#27491", "NVIDIA/TensorRT-LLM#19112"),
    "A7": ("vllm-project/vllm#57136", "pytorch/torchtitan#3709", "sgl-project/sglang#26019", "sgl-project/sglang#33253"),
    "A8": ("vllm-project/vllm#40987", "vllm-project/vllm#40924", "local-inference-lab/vllm#468", "Dao-AILab/flash-attention#2388"),
    "A9": ("vllm-project/vllm#53257", "vllm-project/vllm#27433", "Dao-AILab/flash-attention#2626"),
    "A10": ("vllm-project/vllm#51593", "flashinfer-ai/flashinfer#5015", "vllm-project/vllm#45500", "sgl-project/sglang#23993",
            "sgl-project/sglang#29720", "vllm-project/vllm#47671", "vllm-project/vllm#50427", "mlc-ai/mlc-llm#2543",
            "HazyResearch/HipKittens#22"),  # fmt: skip
    "A11": ("sgl-project/sglang#26517", "vllm-project/vllm#39643", "vllm-project/flash-attention#42"),
    "A12": ("flashinfer-ai/flashinfer#4928", "sgl-project/sglang#38502"),
    "A13": ("pytorch/torchtitan#3235", "Dao-AILab/flash-attention#2842", "flagos-ai/FlagGems#5235", "sgl-project/sglang#4231",
            "flashinfer-ai/flashinfer#3398"),  # fmt: skip
    "A14": ("huggingface/transformers#39408", "vllm-project/vllm#3385", "zml/zml#763", "mlc-ai/mlc-llm#3426", "hao-ai-lab/FastVideo#1457",
            "ROCm/rocm-libraries#12227"),  # fmt: skip
    "A15": ("pytorch/torchtitan#3709", "vllm-project/vllm#41873"),
    "A16": ("flashinfer-ai/flashinfer#4979", "vllm-project/vllm#42580"),
    "A17": ("vllm-project/vllm#45361",),
}

# (text, reports): the reports are about faults whose kind contains the text.
OF_KIND: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lse of live rows", ("Dao-AILab/flash-attention#2573",)),
    ("base of the lse", ("flashinfer-ai/flashinfer#4485", "vllm-project/vllm#52796", "sgl-project/sglang#40903")),
    ("layout of the lse", ("vllm-project/vllm#57012",)),
    ("sinks", ("vllm-project/vllm#49815",)),
    ("the window is", ("huggingface/transformers#39408", "vllm-project/vllm#3385", "zml/zml#763")),
    ("scale is ignored", ("mlc-ai/mlc-llm#3426", "hao-ai-lab/FastVideo#1457")),
    ("padded rows are uninitialised", ("vllm-project/vllm#57136",)),
)


def reports_of(check: str, kind: str) -> list[str]:
    """Returns public reports that resemble a finding: first those about its kind, then those about its check."""
    own = [report for words, reports in OF_KIND if words in kind for report in reports]
    return list(dict.fromkeys([*own, *OF_CHECK.get(check, ())]))


def link(report: str) -> str:
    """Returns the URL of a report such as "vllm-project/vllm#49294"."""
    repository, _, number = report.partition("#")
    return f"https://github.com/{repository}/issues/{number}"
