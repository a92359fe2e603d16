"""Converts ragged rows to padded ones and back. Sequence s has the rows [starts[s], starts[s + 1]) of a ragged tensor,
or row s of a padded one with b x m rows.

Nothing waits for the device, because the caller chooses m. Packing writes the padded tensor and reads the rows;
unpacking reads and writes the rows. The kernels are those of `mlafix.ops.pack_rows` and `mlafix.ops.unpack_rows`.
"""

from mlafix.kernels.tokens import pack_bits, pack_integers, pack_rows, unpack_rows

__all__ = ["pack_bits", "pack_integers", "pack_rows", "unpack_rows"]
