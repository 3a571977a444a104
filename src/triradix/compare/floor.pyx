# cython: language_level=3
"""What the machine itself takes for the parts of a match: nothing here knows of a tree.

Each function repeats its work ``times`` times in C, so that the caller's clock sees nothing of Python.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* A loop over equal keys computes the same again and again. The barrier keeps the compiler from noticing. */
    #if defined(__GNUC__)
    #define BARRIER() __asm__ volatile("" ::: "memory")
    #define NOINLINE __attribute__((noinline))
    #else
    #define BARRIER()
    #define NOINLINE
    #endif

    /* The widest vectors that this processor has, chosen when the module is loaded. */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
    #define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
    #else
    #define WIDEST
    #endif

    WIDEST NOINLINE static int64_t differs_int64(const int64_t *key, const uint32_t *stored, size_t n) {
        int64_t differs = 0;
        for (size_t i = 0; i < n; i++) differs |= key[i] ^ (int64_t)stored[i];
        return differs;
    }

    static int (*volatile compare_bytes)(const void *, const void *, size_t) = memcmp;

    static int64_t differs_int32(const uint32_t *key, const uint32_t *stored, size_t n) {
        return compare_bytes(key, stored, 4 * n);
    }
    """
    void BARRIER() nogil
    int64_t differs_int64(const int64_t *key, const uint32_t *stored, size_t n) nogil
    int64_t differs_int32(const uint32_t *key, const uint32_t *stored, size_t n) nogil


ctypedef fused token_t:
    int64_t
    uint32_t


cdef size_t differing(
    const token_t *keys, size_t count, const uint32_t *stored, size_t rows, size_t n, size_t times
) noexcept nogil:
    """How many of the keys differed from the row of their turn, over all rounds."""
    cdef size_t found = 0, i, _
    for _ in range(times):
        for i in range(count):
            if token_t is int64_t:
                found += differs_int64(keys + i * n, stored + (i % rows) * n, n) != 0
            else:
                found += differs_int32(keys + i * n, stored + (i % rows) * n, n) != 0
            BARRIER()
    return found


cdef size_t shape(size_t keys, size_t length, size_t rows, size_t stored) except 0:
    """The tokens of each."""
    if length != stored:
        raise ValueError(f"keys of {length} tokens, stored rows of {stored}")
    if not (keys and rows and length):
        raise ValueError("there is nothing to compare")
    return length


def compare_int64(const int64_t[:, ::1] keys, const uint32_t[:, ::1] stored, size_t times):
    """Compare each 64-bit key with a row of 32-bit tokens, as long, in turn; ``times`` rounds over all keys.

    Returns how many differed.
    """
    cdef size_t n = shape(keys.shape[0], keys.shape[1], stored.shape[0], stored.shape[1]), found
    with nogil:
        found = differing(&keys[0, 0], keys.shape[0], &stored[0, 0], stored.shape[0], n, times)
    return found


def compare_int32(const uint32_t[:, ::1] keys, const uint32_t[:, ::1] stored, size_t times):
    """The same with 32-bit keys: the C library's memcmp."""
    cdef size_t n = shape(keys.shape[0], keys.shape[1], stored.shape[0], stored.shape[1]), found
    with nogil:
        found = differing(&keys[0, 0], keys.shape[0], &stored[0, 0], stored.shape[0], n, times)
    return found


def copy_int64(int64_t[::1] target, const int64_t[::1] source, size_t times):
    """memcpy of 64-bit slots."""
    cdef size_t _
    if target.shape[0] != source.shape[0]:
        raise ValueError(f"a target of {target.shape[0]} slots for {source.shape[0]}")
    if source.shape[0] == 0:
        return
    with nogil:
        for _ in range(times):
            memcpy(&target[0], &source[0], 8 * source.shape[0])
            BARRIER()


@cython.final
cdef class Chase:
    """Pointers through a working set, one a cache line, in one random cycle: each load needs the one before it."""

    cdef size_t[::1] _lines
    cdef size_t _at

    def __init__(self, size_t[::1] lines, const size_t[::1] order):
        """``lines``: zeroed, the working set, 8 words a line. ``order``: the lines 0 … n − 1 shuffled."""
        cdef size_t i, n = order.shape[0]
        if n == 0 or <size_t>lines.shape[0] != 8 * n:
            raise ValueError(f"{lines.shape[0]} words are not 8 for each of {n} lines")
        self._lines = lines
        for i in range(n):
            lines[8 * order[i]] = 8 * order[(i + 1) % n]
        self._at = 0

    def follow(self, size_t steps):
        """That many dependent loads."""
        cdef size_t at = self._at, _
        cdef const size_t *lines = &self._lines[0]
        with nogil:
            for _ in range(steps):
                at = lines[at]
        self._at = at
        return at


def empty(key):
    """A call that takes one argument and does nothing."""
