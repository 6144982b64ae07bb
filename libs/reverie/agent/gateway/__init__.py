"""Discovery of this machine's gateway, and the HTTP client that calls it."""
