"""Other registries' own words over the one core: code written for one of those runs after changing its import line."""
