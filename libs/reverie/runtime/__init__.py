"""Service runtime: settings, HTTP, authentication, telemetry."""
