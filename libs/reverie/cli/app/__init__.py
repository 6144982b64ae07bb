"""Entry points, the command table and what all commands share."""
