"""The rules of memory: pure functions and values, no input or output."""
