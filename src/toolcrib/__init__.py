"""Toolcrib: define, find, stack, hand over, run and govern the tools of AI agents."""
