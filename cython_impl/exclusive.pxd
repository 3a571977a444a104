"""One operation at a time, also across forks."""


cdef int batches_begin() noexcept
cdef void batches_end() noexcept
cdef void nap() noexcept nogil
