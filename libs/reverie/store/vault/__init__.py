"""Secrets: the vault, rotation of its key, redaction of what was stored before."""
