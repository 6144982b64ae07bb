"""Storage of the engine: agents, groups, messages and turns."""
