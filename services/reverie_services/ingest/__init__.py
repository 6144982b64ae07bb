"""Takes memories and turns in, and derives what can be searched."""
