"""Commands on dreams, maintenance and reviews."""
