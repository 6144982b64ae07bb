"""Keeps rule files such as CLAUDE.md in step with memory."""
