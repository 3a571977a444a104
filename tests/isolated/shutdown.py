"""The interpreter ends while daemon threads are in the middle of calls: it neither hangs nor crashes."""

from __future__ import annotations

import sys
import threading
from typing import Any

from implementations import Implementation

KEYS = [[i % 11, i % 5, i % 3, 7] * 10 for i in range(2_000)]


def main() -> None:
    cache = Implementation(sys.argv[1]).create(enable_kv_cache_events=True)
    for key in KEYS:
        cache.insert(key, key)
    begun = [threading.Event() for _ in range(4)]

    def work(number: int) -> Any:
        while True:
            if number < 2:
                cache.match_prefix_many(KEYS, threads=1 + number)
            else:
                cache.insert([number, *KEYS[0]], [0] * 41)
                cache.evict(5)
                cache.take_events()
            begun[number].set()

    for number in range(4):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    for event in begun:
        event.wait()
    print("the end")


main()
