"""Tenants, keys, quotas, audit, webhooks, background work."""
