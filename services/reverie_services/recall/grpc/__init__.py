"""The gRPC interface of the gateway."""
