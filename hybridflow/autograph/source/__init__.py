"""Python functions as trees: their source, found and verified, and code objects made of trees that were changed."""
