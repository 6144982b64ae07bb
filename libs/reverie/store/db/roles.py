"""The schema and the roles of the database, without importing a driver."""

from __future__ import annotations

SCHEMA = "reverie"
APP_ROLE = "reverie_app"
"""The role with the services' grants; migrations make it."""
READ_ROLE = "reverie_read"
"""The role of what only reads; migrations make it too."""
