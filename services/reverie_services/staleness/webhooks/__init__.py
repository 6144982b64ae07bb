"""Push webhooks of Git hosts."""
