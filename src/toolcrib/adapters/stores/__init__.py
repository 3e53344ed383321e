"""Where the catalogue's tools are kept: one backend a file, one contract suite over all of them."""
