"""NATS JetStream: streams, publishing, consuming, dead letters."""
