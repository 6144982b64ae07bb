"""The engine: runs agents whose turns are made of memory."""
