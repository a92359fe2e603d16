"""A call: its arguments and arrays, the kernel that fits, the launch."""
