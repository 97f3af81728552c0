"""Functions of one example, made into functions of many."""
