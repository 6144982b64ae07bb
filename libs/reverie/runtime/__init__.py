"""What every service runs on: settings, HTTP, authentication, telemetry."""
