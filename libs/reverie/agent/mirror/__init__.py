"""Keeps a folder of readable files in step with memory, both ways."""
