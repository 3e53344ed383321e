"""What a tool is and what may happen to it. Pure: no I/O, no clock, no environment, no logging."""
