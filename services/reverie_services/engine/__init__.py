"""The engine: runs agents, whose turns recall and remember."""
