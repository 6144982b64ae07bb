"""Documents of programs."""
