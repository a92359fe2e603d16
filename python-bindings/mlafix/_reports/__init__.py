"""What the compiler says of a kernel: diagnostics, proofs, remarks, why a call runs its code."""
