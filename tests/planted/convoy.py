"""Two threads that keep the GIL, and one that wants it for a moment again and again."""

import threading
import time


def crunch(block: range) -> int:
    total = 0
    for number in block:
        total ^= number * 7
    return total


def work() -> None:
    for _ in range(2_500):
        crunch(range(2_000))


def tick() -> None:
    while any(worker.is_alive() for worker in workers):
        time.sleep(0.001)


workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
tick()
