"""Tenants, keys, quotas, vault, audit, export and import."""
