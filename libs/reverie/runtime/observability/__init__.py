"""Logs, metrics, traces, the audit log."""
