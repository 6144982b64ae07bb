"""The HTTP routes of the dream service."""
