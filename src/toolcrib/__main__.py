"""``python -m toolcrib`` is ``toolcrib``."""

from toolcrib.surfaces.cli import main

main()
