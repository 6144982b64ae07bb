"""Rate limits and the limit on concurrent requests."""
