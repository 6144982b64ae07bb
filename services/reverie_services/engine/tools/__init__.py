"""The tools of agents: those of the engine, and those of MCP servers."""
