"""Readers of the transcripts that coding agents write."""
