"""Commands that connect coding agents and clones."""
