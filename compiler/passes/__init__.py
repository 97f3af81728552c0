"""Graph -> Graph.  Each module holds one pass or one table of rules."""
