"""Patterns of scopes, as grants and vault entries name them."""

from __future__ import annotations


def scope_matches(pattern: str, scope: str) -> bool:
    """Whether a grant pattern covers a scope: `*` covers all, `a/b/*` all below and `a/b`."""
    if pattern == "*":
        return True
    if pattern.endswith("/*"):
        return scope == pattern[:-2] or scope.startswith(pattern[:-1])
    return scope == pattern
