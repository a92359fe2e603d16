"""The kernel library as functions, for numpy arrays, torch tensors and whatever else has `__dlpack__`.

Each function has a `bind`, which checks and packs a call once to launch it many times.
"""

from ._types import Array, Base, Bound, LseLayout, Stream
from .blank import chunks_with_zero_kv, fill_pad_rows, fixup_zero_kv_rows, mask_empty_context, mask_empty_context_lse
from .merge import merge_attn_states, merge_attn_stats, merge_state_in_place
from .merge_many import combine_split_kv, merge_states, merge_states_list, merge_states_ragged
from .metadata import clear_pad_flags, expand_context_lens, is_prefilling, mark_prefilling
from .rows import quantize_fp8_static, rmsnorm, softmax

__all__ = [
    "Array", "Base", "Bound", "LseLayout", "Stream", "chunks_with_zero_kv", "clear_pad_flags", "combine_split_kv",
    "expand_context_lens", "fill_pad_rows", "fixup_zero_kv_rows", "is_prefilling", "mark_prefilling", "mask_empty_context",
    "mask_empty_context_lse", "merge_attn_states", "merge_attn_stats", "merge_state_in_place", "merge_states",
    "merge_states_list", "merge_states_ragged", "quantize_fp8_static", "rmsnorm", "softmax",
]
