"""Looking up many keys on several cores.

Looking up changes nothing, so threads may do it side by side while nobody else has the tree. They are begun for a chunk
of a batch and ended with it, which costs tens of microseconds where the chunk takes thousands: so a fork meets none of
them, none waits for work, and none is left when the process ends. They touch no Python object and need no GIL.
"""

import os

from .key cimport Key, key_ahead
from .prefetch cimport GROUP, go_ahead
from .tree cimport Handle
from .walk cimport find_match, find_place

cdef extern from "<pthread.h>":
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_attr_t:
        pass
    int pthread_attr_init(pthread_attr_t *) noexcept nogil
    int pthread_attr_setstacksize(pthread_attr_t *, size_t) noexcept nogil
    int pthread_attr_destroy(pthread_attr_t *) noexcept nogil
    int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *) noexcept nogil, void *) noexcept nogil
    int pthread_join(pthread_t, void **) noexcept nogil

cdef extern from *:
    Py_ssize_t __atomic_fetch_add(Py_ssize_t *, Py_ssize_t, int) noexcept nogil
    int __ATOMIC_RELAXED

cdef enum:
    MOST_THREADS = 64
    STACK = 256 << 10    # nothing recurses

cdef int known_cores = 0


cdef int cores() except -1:
    """How many threads of this process can run at the same time."""
    global known_cores
    if known_cores == 0:
        known_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return known_cores


cdef void look_up(Lookups *lookups) noexcept nogil:
    """Take a group of keys after the other until none is left."""
    cdef Py_ssize_t begin, end, i
    cdef Key key
    cdef const Handle *known
    while True:
        begin = __atomic_fetch_add(&lookups.next, <Py_ssize_t> GROUP, __ATOMIC_RELAXED)
        if begin >= lookups.end:
            return
        end = min(begin + <Py_ssize_t> GROUP, lookups.end)
        if lookups.ahead:
            go_ahead(
                lookups.tree, lookups.keys + begin, lookups.roots + begin, lookups.known + begin, <int> (end - begin)
            )
            # Most likely the next for this thread.
            for i in range(end, min(end + <Py_ssize_t> GROUP, lookups.end)):
                key_ahead(lookups.keys[i])
        for i in range(begin, end):
            key = lookups.keys[i]
            known = &lookups.known[i] if lookups.known[i].length else NULL
            if lookups.lengths != NULL:
                lookups.places[i] = find_place(lookups.tree, lookups.roots[i], known, key)
                lookups.lengths[i] = lookups.places[i].depth
            else:
                lookups.places[i] = find_match(lookups.tree, lookups.roots[i], known, key, &lookups.handles[i])


cdef void *help_out(void *lookups) noexcept nogil:
    look_up(<Lookups *> lookups)
    return NULL


cdef void look_up_all(Lookups *lookups, int threads) noexcept nogil:
    """Look up all keys on up to so many cores, this thread's among them; fewer where a thread cannot be had."""
    cdef pthread_t[MOST_THREADS] others
    cdef pthread_attr_t attributes
    cdef int begun = 0
    cdef int i
    if threads > 1 and pthread_attr_init(&attributes) == 0:
        pthread_attr_setstacksize(&attributes, STACK)
        while begun < min(threads - 1, <int> MOST_THREADS):
            if pthread_create(&others[begun], &attributes, help_out, lookups):
                break
            begun += 1
        pthread_attr_destroy(&attributes)
    look_up(lookups)
    for i in range(begun):
        pthread_join(others[i], NULL)
