"""What a keeper runs for a command: it becomes the program. It stands alone."""

import os
import sys

if __name__ == "__main__":
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell is what is wanted
