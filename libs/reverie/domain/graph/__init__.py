"""Causes, ranks and communities among memories."""
