"""Drives real coding agents, headless, against a scripted model, and reads what reached it."""
