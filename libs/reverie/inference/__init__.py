"""Embedding models, language models, token counting."""
