"""Runs a kernel row by row and checks every value."""
