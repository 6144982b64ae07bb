"""The synchronous path of a write."""
