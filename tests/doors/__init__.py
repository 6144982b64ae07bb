"""Every operation through every door, on one running system."""
