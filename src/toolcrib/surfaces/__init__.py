"""The doors: each parses, calls and renders, and decides nothing."""
