"""One operation at a time, also across forks.

The GIL is the lock of every tree. Only a batch gives it up, and marks its tree as busy for that time; whoever wants
that tree then waits without the GIL. The mark is taken back before the batch asks for the GIL: a thread that does so
when the interpreter has begun to end gets no further, and finalizers may still want the tree. So a single call takes no
lock at all, and a fork finds no lock held: it waits until no batch is between two chunks' ends, and while it does
batches keep the GIL.
"""

import os

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int nanosleep(const timespec *, timespec *)


cdef void nap() noexcept nogil:
    cdef timespec time
    time.tv_sec = 0
    time.tv_nsec = 50_000
    nanosleep(&time, NULL)


cdef int batches = 0    # chunks that run without the GIL now; begun with it, ended without it
cdef int forks = 0      # threads that are about to fork


cdef int batches_begin() noexcept:
    """Whether a chunk may give the GIL up. `batches_end` ends it if so."""
    global batches
    if forks:
        return False
    __atomic_fetch_add(&batches, 1, __ATOMIC_RELEASE)
    return True


cdef void batches_end() noexcept nogil:
    __atomic_fetch_add(&batches, -1, __ATOMIC_RELEASE)


def _before_fork():
    global forks
    forks += 1
    while __atomic_load_n(&batches, __ATOMIC_ACQUIRE):
        with nogil:
            nap()


def _after_fork_in_parent():
    global forks
    forks -= 1


def _after_fork_in_child():
    global forks
    forks = 0


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
