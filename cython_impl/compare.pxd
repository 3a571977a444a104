"""How far a key and a run agree, and the other loops over many numbers: where the calls spend their time."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from .key cimport Key


cdef int64_t common_prefix(Key key, const uint32_t *stored, int64_t count) noexcept nogil
cdef bint are_tokens(Key key) noexcept nogil
cdef bint are_consecutive(const int64_t *numbers, int64_t count) noexcept nogil
cdef bint has_negative(const int32_t *numbers, int64_t count) noexcept nogil
cdef void copy_tokens(Key key, uint32_t *target, int64_t count) noexcept nogil
cdef void widen(const uint32_t *numbers, int64_t *target, int64_t count) noexcept nogil
cdef void widen_back(const uint32_t *numbers, int64_t *target, int64_t count) noexcept nogil
cdef void write_steps(int64_t first, int64_t step, int64_t *target, int64_t count) noexcept nogil
