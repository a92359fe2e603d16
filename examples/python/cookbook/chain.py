"""Three launches of a decode in one: rows of sequences without keys count for nothing, the rest is merged, and the result is quantised to
fp8.

The mask is a predicate of the load: rows of a sequence without keys are not even read, and nothing blanks them before.
What it costs is the bytes of the two states, read once, and of the result, and a few loads from the caches for each row.
Of up to 128 tokens, all rows are read before it is known which of them count. The kernels are those of
`mlafix.ops.fixup_merge`, which has more scales.
"""

from mlafix.kernels.merge import merge_masked_states
from mlafix.kernels.scaling import Scaling

# Arguments: out, out_scales, no global scale, no first row, out_lse, prefix, prefix_lse, suffix, suffix_lse, kv_lens, cu_seqlens, and
# 1 + log2(sequences). One scale for all, which is given:
chain_static = merge_masked_states(Scaling(is_static=True)).specialize(G=1)

# A scale for each group of K elements, which is stored:
chain_groups = merge_masked_states(Scaling())
