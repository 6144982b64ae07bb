"""The asynchronous path of a write: chunks, vectors, entities, edges."""
