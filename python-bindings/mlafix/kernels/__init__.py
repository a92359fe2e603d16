"""The kernel library: every kernel that the package launches, in the modules that `mlafix.ops` has for their functions.

`scripts/gen-kernels` writes those that are compiled ahead as text (kernels/*.mlir); others compile when first used.
"""

MODULES = ("blank", "merge", "merge_many", "merge_mapped", "metadata", "push", "ranks", "rows", "tokens")
