"""Tools that Toolcrib ships, written as a user would write them."""
