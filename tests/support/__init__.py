"""Real parts for the tests: each starts on loopback in a directory of its own and is gone afterwards."""
