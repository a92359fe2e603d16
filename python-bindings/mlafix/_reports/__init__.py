"""Reports on kernels: diagnostics, proofs, remarks, explanations of calls."""
