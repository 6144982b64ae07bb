"""Scopes, principals, grants and the audit log's entries."""
