"""Ragged rows to padded ones and back: sequence s has the rows [starts[s], starts[s + 1]), or row s of a tensor of b x m rows.

Nothing waits for the device: the caller chooses m. What it costs is the bytes of the padded tensor, written, and of the
rows, read; back, those of the rows twice. The kernels are those of `mlafix.ops.pack_rows` and `mlafix.ops.unpack_rows`.
"""

from mlafix.kernels.tokens import pack_bits, pack_integers, pack_rows, unpack_rows

__all__ = ["pack_bits", "pack_integers", "pack_rows", "unpack_rows"]
