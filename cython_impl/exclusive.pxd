"""One operation at a time, also across forks."""

cdef extern from *:
    int __atomic_load_n(const int *, int) noexcept nogil
    void __atomic_store_n(int *, int, int) noexcept nogil
    int __atomic_fetch_add(int *, int, int) noexcept nogil
    int __ATOMIC_ACQUIRE, __ATOMIC_RELEASE


cdef int batches_begin() noexcept
cdef void batches_end() noexcept nogil
cdef void nap() noexcept nogil
