"""The `reverie` command line."""
