"""The records of what a conversation settled, from its statements."""
