"""Functions with the engines' own names, argument order, defaults, layouts and return values.

One module an engine: `vllm`, `sglang`, `flashinfer`, `flash_attn`, `flash_mla`, `aiter`, `attn_gym`, `cache_dit`,
`ring_attention`, `tensorrt_llm`, `tokenspeed`, `torch_context_parallel`.
Where an engine's kernel breaks the numerical contract (N1 to N13), ours keeps it, and the function's docstring says
where the two differ. `ENGINE_VERSIONS` says of each function which version of its engine it follows.
"""

from ._engine_versions import ENGINE_VERSIONS as ENGINE_VERSIONS
