"""Looking up many keys on several cores."""

from libc.stdint cimport int64_t

from .key cimport Key
from .tree cimport Handle, Place, Tree


cdef struct Lookups:         # of the keys from ``next`` to ``end``
    const Tree *tree
    const Key *keys
    const Place *roots
    const Handle *known      # of length 0: none
    Handle *handles          # where a match goes; or NULL, and
    int64_t *lengths         # the lengths alone
    Place *places            # where they ended; of depth -1 if the key is not of tokens
    Py_ssize_t next
    Py_ssize_t end
    bint ahead               # whether going ahead pays


cdef int cores() except -1
cdef void look_up_all(Lookups *lookups, int threads) noexcept nogil
