"""Everything that touches the world, one backend a file."""
