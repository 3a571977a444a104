"""Keys where the caller keeps them: nothing is copied before it is stored."""

from libc.stdint cimport int64_t, uint32_t


cdef struct Key:
    # Another thread may write to the tokens during the call, so nothing follows from having looked at one.
    const void *data
    int64_t count
    bint wide            # 64-bit integers, signed or not, which may lie outside of the tokens; else uint32


cdef inline Key key_from(Key key, int64_t at) noexcept nogil:
    """The key without its first ``at`` tokens."""
    key.data = <const char *> key.data + at * (8 if key.wide else 4)
    key.count -= at
    return key


cdef inline uint32_t key_token(Key key, int64_t at) noexcept nogil:
    """Cut to 32 bits."""
    return <uint32_t> (<const int64_t *> key.data)[at] if key.wide else (<const uint32_t *> key.data)[at]
