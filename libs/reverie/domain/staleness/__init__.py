"""What a change of code means for the memories that touch it."""
