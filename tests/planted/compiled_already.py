"""Busy, but with compiled code that lets go of the GIL: nothing for a rewrite."""

from hashlib import sha256


def main() -> None:
    buffer = bytes(1 << 20)
    for _ in range(900):
        sha256(buffer).digest()


main()
