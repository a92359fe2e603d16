"""A kernel run row by row, every value checked."""
