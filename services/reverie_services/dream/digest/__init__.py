"""Turns the turns of a session into memories."""
