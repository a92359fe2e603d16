"""What is kept on disk: cached kernels, their names, archives, the compiler's place, warm-up."""
