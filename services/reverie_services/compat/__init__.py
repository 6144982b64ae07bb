"""The REST interfaces of other memory systems (mem0, Hindsight), for their clients."""
