"""Owner of one tree, and of the names of its spaces."""

import os

cimport cython
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from .children cimport children_free
from .events cimport event_free, event_queue
from .exclusive cimport __ATOMIC_ACQUIRE, __atomic_load_n, nap
from .heap cimport heap_free, heap_reserve
from .log cimport notes_free
from .node cimport run_new
from .slab cimport slab_bytes, slab_free, slab_give, slab_init, slab_live, slab_reserve, slab_take
from .span cimport span_free
from .tree cimport (
    Birth, Detail, Event, Mark, Place, Run, Space, Tree, detail_of, space_at,
)


cdef int64_t forests_made = 0


@cython.final
cdef class Forest:
    def __cinit__(self):
        global forests_made
        cdef bytes key = os.urandom(16)
        memset(&self.tree, 0, sizeof(Tree))
        slab_init(&self.tree.runs, sizeof(Run), sizeof(Detail))
        slab_init(&self.tree.marks, sizeof(Mark), 0)
        slab_init(&self.tree.births, sizeof(Birth), 0)
        slab_init(&self.tree.spaces, sizeof(Space), 0)
        self.tree.space_heap.of_spaces = True
        self.tree.key0 = int.from_bytes(key[:8], "little")
        self.tree.key1 = int.from_bytes(key[8:], "little")
        forests_made += 1
        self.number = forests_made
        self.names = {}
        self.unnamed = 0
        self.busy = 0
        self.wanted = False

    def __dealloc__(self):
        cdef Event *event = self.tree.first_event
        cdef Event *following
        self.clear()
        while event != NULL:
            following = event.next
            event_free(event)
            event = following
        notes_free(self.tree.noted)

    cdef int wait(self) except -1:
        while __atomic_load_n(&self.busy, __ATOMIC_ACQUIRE):
            self.wanted = True
            with nogil:
                while __atomic_load_n(&self.busy, __ATOMIC_ACQUIRE):
                    nap()
        return 0

    cdef void yield_to_waiting(self) noexcept:
        """Between the chunks of a batch: let the threads that wait go first."""
        if self.wanted:
            self.wanted = False
            with nogil:
                nap()
                nap()

    cdef Place root_of(self, object name) except *:
        """The root of a namespace; run 0 if it has no pages."""
        cdef Place place
        cdef uint32_t space = self.space_of(name)
        place.run = space_at(&self.tree, space).root if space else 0
        place.depth = 0
        return place

    cdef Place make_root(self, object name) except *:
        """The root of a namespace, made if need be (then with nothing below it)."""
        cdef Tree *tree = &self.tree
        cdef Place place = self.root_of(name)
        cdef uint32_t space, root
        cdef Space *entry
        if place.run:
            return place
        if slab_reserve(&tree.spaces, 1) or slab_reserve(&tree.runs, 1):
            raise MemoryError
        if heap_reserve(tree, &tree.space_heap, slab_live(&tree.spaces) + 1):
            raise MemoryError
        space = slab_take(&tree.spaces)
        entry = space_at(tree, space)
        try:
            self.names[name] = space
        except BaseException:
            entry.total = -1
            slab_give(&tree.spaces, space)
            raise
        if name is None:
            self.unnamed = space
        root = run_new(tree, 0, space, 0)
        memset(entry, 0, sizeof(Space))
        entry.root = root
        if name is not None:
            Py_INCREF(name)
            entry.name = <PyObject *> name
        place.run = root
        return place

    cdef void drop_space(self, uint32_t space) noexcept:
        """Forget a space without pages; with the last one the memory goes back. No foreign code runs.

        All births are over by then: a handle finds its birth beyond those in use, or made later by another insert.
        """
        cdef Space *entry = space_at(&self.tree, space)
        if entry.name == NULL:
            self.unnamed = 0
            self.names.pop(None)
        else:
            self.names.pop(<object> entry.name)
        heap_free(&self.tree, &entry.candidates.heap)
        detail_of(&self.tree, entry.root).space = 0
        slab_give(&self.tree.runs, entry.root)
        Py_XDECREF(entry.name)
        entry.total = -1
        slab_give(&self.tree.spaces, space)
        if slab_live(&self.tree.spaces) == 0:
            self.give_back()
            self.names.clear()

    cdef void drop_empty_spaces(self) noexcept:
        cdef uint32_t space = self.tree.empty_spaces
        cdef uint32_t following
        self.tree.empty_spaces = 0
        while space:
            following = space_at(&self.tree, space).next_empty
            self.drop_space(space)
            space = following

    cdef void give_back(self) noexcept:
        """Free the slabs, the table and the heap of spaces, none of which holds anything more that counts."""
        cdef Tree *tree = &self.tree
        tree.pending_count = 0
        heap_free(tree, &tree.space_heap)
        slab_free(&tree.runs)
        slab_free(&tree.marks)
        slab_free(&tree.births)
        slab_free(&tree.spaces)
        children_free(tree)

    cdef void clear(self) noexcept:
        """Drop all runs and spaces; the memory goes back. The names, the clock, the events, the arguments stay."""
        cdef Tree *tree = &self.tree
        cdef uint32_t at
        cdef const Detail *detail
        for at in range(1, tree.runs.used):
            detail = detail_of(tree, at)
            # The first run of a span's list frees it; a root has none.
            if detail.space and detail.span_previous == 0:
                span_free(detail.span)
        for at in range(1, tree.spaces.used):
            if space_at(tree, at).total >= 0:
                heap_free(tree, &space_at(tree, at).candidates.heap)
                Py_XDECREF(space_at(tree, at).name)
        self.unnamed = 0
        self.give_back()
        tree.empty_spaces = 0
        tree.total = tree.locked = tree.span_bytes = 0
        tree.lookups = tree.lookup_tokens = tree.hit_tokens = 0
        tree.inserts = tree.inserted_tokens = tree.evicted_tokens = 0
        tree.epoch += 1

    cdef int64_t memory_bytes(self) noexcept:
        """What is allocated for the tree, the queued events included."""
        cdef Tree *tree = &self.tree
        return (
            <int64_t> sizeof(Tree)
            + <int64_t> (slab_bytes(&tree.runs) + slab_bytes(&tree.marks))
            + <int64_t> (slab_bytes(&tree.births) + slab_bytes(&tree.spaces))
            + <int64_t> (tree.table.capacity * sizeof(uint64_t))
            + tree.heap_bytes
            + tree.span_bytes
            + tree.event_bytes
        )

    cdef void name_event(self, Event *event, object name) noexcept:
        if name is not None:
            Py_INCREF(name)
            event.name = <PyObject *> name

    cdef void requeue(self, Event *first) noexcept:
        """Put events that were taken back in front of those that came meanwhile."""
        cdef Event *later = self.tree.first_event
        self.tree.first_event = self.tree.last_event = NULL
        self.tree.event_bytes = 0
        while first != NULL or later != NULL:
            if first == NULL:
                first = later
                later = NULL
            event_queue(&self.tree, first)
            first = first.next
