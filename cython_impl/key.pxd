"""Keys where the caller keeps them: nothing is copied before it is stored."""

from libc.stdint cimport int64_t, uint32_t

cdef extern from *:
    void __builtin_prefetch(const void *) noexcept nogil


cdef struct Key:             # of two words, so that calls pass it in registers
    # Another thread may write to the tokens during the call, so nothing follows from having looked at one.
    const void *data
    int64_t shape            # twice the number of tokens; and 1 if they are 64-bit integers, else uint32


cdef inline Key key_of(const void *data, int64_t count, bint wide) noexcept nogil:
    cdef Key key
    key.data = data
    key.shape = count << 1 | wide
    return key


cdef inline bint is_wide(Key key) noexcept nogil:
    """Whether they are 64-bit integers, signed or not, which may lie outside of the tokens."""
    return key.shape & 1


cdef inline int64_t key_count(Key key) noexcept nogil:
    return key.shape >> 1


cdef inline Key key_from(Key key, int64_t at) noexcept nogil:
    """The key without its first ``at`` tokens."""
    cdef Key rest
    rest.data = <const char *> key.data + (at << (2 + is_wide(key)))
    rest.shape = key.shape - (at << 1)
    return rest


cdef inline void key_ahead(Key key) noexcept nogil:
    """Ask for its first lines; the processor itself asks for those that follow."""
    cdef int64_t bytes = min(key_count(key) << (2 + is_wide(key)), <int64_t> 256)
    cdef int64_t at
    for at in range(0, bytes, 64):
        __builtin_prefetch(<const char *> key.data + at)


cdef inline uint32_t key_token(Key key, int64_t at) noexcept nogil:
    """Cut to 32 bits."""
    return <uint32_t> (<const int64_t *> key.data)[at] if is_wide(key) else (<const uint32_t *> key.data)[at]
