"""Replaces three launches of a decode step by one: those that blank the rows of sequences without keys, merge two
states, and quantise the result to fp8.

Whether a sequence has keys is a predicate of the load: rows of a sequence without keys are not read, and nothing blanks
them first. The launch reads the two states once, writes the result, and makes a few loads from the caches for each row.
With up to 128 tokens, however, the launch reads all rows before it knows which of them have keys.
`mlafix.ops.fixup_merge` uses these kernels, and similar ones for other kinds of scales.
"""

from mlafix.kernels.merge import merge_masked_states
from mlafix.kernels.scaling import Scaling

# This kernel has one scale for all rows, which the caller passes. Its arguments are out, out_scales, None (there is no
# global scale), 0 (the first row of scales in tiles, unused here), out_lse, prefix, prefix_lse, suffix, suffix_lse,
# kv_lens, cu_seqlens, and 1 + log2(sequences).
chain_static = merge_masked_states(Scaling(is_static=True)).specialize(G=1)

# This kernel stores a scale for each group of K elements.
chain_groups = merge_masked_states(Scaling())
