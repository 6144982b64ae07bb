"""Files that memories are exported to and imported from."""
