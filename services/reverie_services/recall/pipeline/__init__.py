"""Recall pipeline: retrieve, expand, score, rerank, select."""
