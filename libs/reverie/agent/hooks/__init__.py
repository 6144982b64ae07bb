"""The hooks that a coding agent calls."""
