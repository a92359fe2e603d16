"""Converts ragged rows to padded ones and back. In a ragged tensor, sequence s has the rows [starts[s], starts[s + 1]).
In a padded tensor of b x m rows, sequence s has the m rows padded[s], and the last of these may be padding.

The host does not wait for the device, because the caller chooses m. Packing reads the ragged rows and writes the whole
padded tensor. Unpacking reads the rows that are no padding, and writes the ragged rows. The kernels are those of
`mlafix.ops.pack_rows` and `mlafix.ops.unpack_rows`.
"""

from mlafix.kernels.tokens import pack_bits, pack_integers, pack_rows, unpack_rows

__all__ = ["pack_bits", "pack_integers", "pack_rows", "unpack_rows"]
