"""Search over the catalogue, derived from the store."""
