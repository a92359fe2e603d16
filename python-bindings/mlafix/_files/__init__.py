"""Files: cached kernels, their names, archives, the compiler's location, warm-up."""
