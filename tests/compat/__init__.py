"""The interfaces of other memory systems, on a running system."""
