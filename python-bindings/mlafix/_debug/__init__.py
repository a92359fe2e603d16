"""Follows a kernel row by row on the host and checks every access and value."""
