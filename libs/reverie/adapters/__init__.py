"""Adapters of agent frameworks, one module each; nothing is imported before one is asked for."""
