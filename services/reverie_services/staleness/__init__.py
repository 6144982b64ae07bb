"""Turns git changes into marks on memories that may no longer be true."""
