"""Waits for something outside, and does next to nothing itself."""

import time


def fetch() -> None:
    time.sleep(0.003)


def main() -> None:
    for _ in range(250):
        fetch()


main()
