"""Calls of kernels: their arguments and arrays, the choice of the kernel that fits, and the launch."""
