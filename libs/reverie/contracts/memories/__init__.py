"""Bodies of memories: reads, writes, edits, graph, pictures, and what git changes do to them."""
