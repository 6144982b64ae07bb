"""The users of the bus that are needed without its client."""

from __future__ import annotations

ADMIN_USER = "reverie"
"""The user of migrations and operators, who makes streams; it may do everything."""
