"""Reads commits of a clone and announces what they changed."""
