"""Adapters of agent frameworks, on a running system."""
