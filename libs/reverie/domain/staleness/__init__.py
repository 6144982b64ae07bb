"""The effect of a code change on the memories that are anchored to it."""
