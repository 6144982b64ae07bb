"""Writes Reverie into the configuration of coding agents."""
