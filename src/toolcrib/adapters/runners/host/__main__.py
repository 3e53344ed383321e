"""The program around a bundle: it builds the walls, then lets the bundle run inside. It stands alone.

    python -I host CONTROL CALLS CLOCK

CONTROL and CALLS are sockets and CLOCK a file, whose other ends the service holds. On CONTROL the service says what to
build; when it closes its end, everything inside dies. See ``toolcrib_box`` for who is who.
"""

import sys

from toolcrib_box.launcher import launch

if __name__ == "__main__":
    launch(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
