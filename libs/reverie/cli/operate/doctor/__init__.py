"""Checks of `reverie doctor`."""
