"""Executes PTX without a GPU."""
