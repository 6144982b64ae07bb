"""The REST interfaces of other memory systems, answered by this one, for their own clients."""
