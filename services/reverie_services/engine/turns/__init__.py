"""One turn of an agent: the loop, its limits, and how it ends."""
