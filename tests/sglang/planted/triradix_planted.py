"""Backends with a planted fault: what the engine's tests say of them shows what those tests are worth."""

from __future__ import annotations

from typing import Any


def register() -> None:
    from sglang.srt.mem_cache.registry import register_radix_cache_backend, registered_radix_cache_backends

    for name, build in (("planted-wrong-slots", _wrong_slots), ("planted-leak", _leak)):
        if name not in registered_radix_cache_backends():
            register_radix_cache_backend(name, build)


def _wrong_slots(context: Any) -> Any:
    """Hands out the slots of a prompt's second half for its first half too.

    (In another order they would change nothing: each key knows its position, and attention sums over them.)
    """
    from triradix.sglang.cache import TriradixCache

    class WrongSlots(TriradixCache):
        def path_device_indices(self, node: Any) -> Any:
            slots = super().path_device_indices(node).clone()
            half = len(slots) // 2
            slots[:half] = slots[half : 2 * half]
            return slots

    return WrongSlots(context.params, "rust")


def _leak(context: Any) -> Any:
    """Forgets to free one slot of each eviction."""
    from triradix.sglang.cache import TriradixCache

    class Forgetful:
        def __init__(self, allocator: Any) -> None:
            self._allocator = allocator

        def __getattr__(self, name: str) -> Any:
            return getattr(self._allocator, name)

        def free_segment(self, slots: Any, *, start_pos: int) -> None:
            self._allocator.free_segment(slots[1:], start_pos=start_pos)

    class Leak(TriradixCache):
        def evict(self, params: Any) -> Any:
            allocator = self.token_to_kv_pool_allocator
            self.token_to_kv_pool_allocator = Forgetful(allocator)
            try:
                return super().evict(params)
            finally:
                self.token_to_kv_pool_allocator = allocator

    return Leak(context.params, "rust")
