"""``python -m triradix``."""

import sys

from triradix.cli import main

if __name__ == "__main__":
    sys.exit(main())
