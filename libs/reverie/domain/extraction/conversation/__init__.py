"""A conversation as topics, exchanges, key statements, and the work of its tools."""
