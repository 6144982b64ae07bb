"""Watches the clones of this machine, and follows agents that have no hooks."""
