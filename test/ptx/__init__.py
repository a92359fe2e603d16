"""PTX executed without a GPU."""
