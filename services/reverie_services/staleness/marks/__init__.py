"""Stale marks: finds the memories that a change makes doubtful, and grades the doubt."""
