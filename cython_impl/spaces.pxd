"""The tree with the names of its spaces: where C meets Python."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from .exclusive cimport __ATOMIC_ACQUIRE, __ATOMIC_RELEASE, __atomic_load_n, __atomic_store_n
from .tree cimport Event, Place, Tree


cdef class Forest:
    cdef Tree tree
    cdef int64_t number        # of this cache alone, from 1
    cdef dict names            # the pair of a namespace (None: the default one) -> its space
    cdef uint32_t unnamed      # the space of the default namespace, or 0
    cdef int busy              # a batch works on the tree without the GIL
    cdef bint wanted           # another thread waits for it

    cdef inline int enter(self) except -1:
        """Wait until the tree can be changed. It stays so while the caller keeps the GIL and runs no Python code."""
        if __atomic_load_n(&self.busy, __ATOMIC_ACQUIRE):
            self.wait()
        return 0

    cdef inline void leave(self) noexcept nogil:
        """The batch is done with the tree."""
        __atomic_store_n(&self.busy, 0, __ATOMIC_RELEASE)

    cdef inline uint32_t space_of(self, object name) except? 0:
        """The space of a namespace; 0 if it has no pages."""
        if name is None:
            return self.unnamed
        return self.names.get(name, 0)

    cdef int wait(self) except -1
    cdef void yield_to_waiting(self) noexcept
    cdef Place root_of(self, object name) except *
    cdef Place make_root(self, object name) except *
    cdef void drop_space(self, uint32_t space) noexcept
    cdef void drop_empty_spaces(self) noexcept
    cdef void give_back(self) noexcept
    cdef void clear(self) noexcept
    cdef int64_t memory_bytes(self) noexcept
    cdef void name_event(self, Event *event, object name) noexcept
    cdef void requeue(self, Event *first) noexcept
