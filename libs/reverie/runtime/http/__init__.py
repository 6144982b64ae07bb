"""The HTTP application: routes, bodies, problems, the reverse proxy."""
