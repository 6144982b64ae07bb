"""Names in the database that both drivers use, without importing either of them."""

from __future__ import annotations

SCHEMA = "reverie"
APP_ROLE = "reverie_app"
"""The role with the services' grants; migrations make it."""
READ_ROLE = "reverie_read"
"""The role of what only reads; migrations make it too."""
