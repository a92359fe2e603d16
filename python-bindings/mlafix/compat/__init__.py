"""Functions with the engines' own names, argument order, defaults, layouts and return values.

One module per engine: `vllm`, `sglang`, `flashinfer`, `flash_attn`, `flash_mla`, `aiter`, `attn_gym`, `cache_dit`,
`ring_attention`, `tensorrt_llm`, `tokenspeed`, `torch_context_parallel`. Where an engine's kernel breaks the numerical
contract (N1 to N13), ours keeps it, and the function's docstring lists the differences. `ENGINE_VERSIONS` gives the
version of the engine that each function follows.
"""

from ._engine_versions import ENGINE_VERSIONS as ENGINE_VERSIONS
