"""Results are light: what costs more than a few words is made on first use.

None of them can be part of a reference cycle (a forest refers to no result): the garbage collector need not know them.
"""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from triradix.errors import StaleNodeError

from .births cimport find_page
from .spaces cimport Forest
from .tree cimport Handle, Place
from .walk cimport gather

cdef extern from *:
    """
    #ifdef __linux__
    #include <stdint.h>
    #include <sys/mman.h>
    #endif
    /* Ask for huge pages where there is much to be written for the first time, as NumPy does for its own memory. */
    static inline void ask_huge_pages(char *memory, size_t size) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        size_t skipped = (4096 - (uintptr_t) memory % 4096) % 4096;
        if (size >= 1 << 22) madvise(memory + skipped, size - skipped, MADV_HUGEPAGE);
    #else
        (void) memory;
        (void) size;
    #endif
    }
    """
    void ask_huge_pages(char *, size_t) noexcept

cnp.import_array()


cdef object new_array(int64_t size):
    """An int64 array of undefined contents."""
    cdef cnp.npy_intp length = size
    return cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INT64)


cdef int64_t *array_data(object array) noexcept:
    return <int64_t *> cnp.PyArray_DATA(<cnp.ndarray> array)


cdef object new_read_only_array(int64_t size):
    """An int64 array that only C can write to: it shows bytes, so that NumPy never makes it writable."""
    cdef cnp.npy_intp length = size
    cdef bytes memory = PyBytes_FromStringAndSize(NULL, size * <int64_t> sizeof(int64_t))
    cdef cnp.ndarray array = cnp.PyArray_SimpleNewFromData(1, &length, cnp.NPY_INT64, PyBytes_AS_STRING(memory))
    ask_huge_pages(PyBytes_AS_STRING(memory), size * sizeof(int64_t))
    cnp.PyArray_CLEARFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)
    cnp.set_array_base(array, memory)
    return array


cdef Place place_of(Forest forest, const Handle *handle, object name) except *:
    """Where the page of a handle is now, after `Forest.enter`. A root without pages has run 0."""
    cdef Place place
    place.depth = handle.length
    if handle.length:
        place.run = find_page(&forest.tree, handle.birth, handle.creation, handle.length)
        if place.run == 0:
            raise StaleNodeError("this node is stale: its page was evicted, or the cache was reset")
    else:
        if handle.creation != forest.tree.epoch:
            raise StaleNodeError("this node is stale: its page was evicted, or the cache was reset")
        place = forest.root_of(name)
    return place


cdef object path_slots(Forest forest, const Handle *handle, object name, int64_t start):
    """The slots from unit ``start`` to the page of a handle, read-only."""
    cdef object array = new_read_only_array(max(handle.length - start, <int64_t> 0))
    forest.enter()
    gather(&forest.tree, place_of(forest, handle, name), start, array_data(array))
    return array


cdef Forest nowhere = Forest()
nowhere.tree.epoch = -1    # so that whatever was not made by a cache is stale


cdef object cannot_be_made(object result):
    raise TypeError(f"a {type(result).__name__} comes from a prefix cache; it cannot be made")


def _no_copy(self):
    raise TypeError(f"{type(self).__name__} objects can be neither copied nor pickled")


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Node:
    """A handle to a cached page or a root (see `triradix.Node`)."""

    def __cinit__(self):
        self.forest = nowhere

    def __init__(self):
        cannot_be_made(self)

    @property
    def length(self):
        """Units from the root to the end of this page; 0 for a root."""
        return self.handle.length

    @property
    def is_root(self):
        """Whether this is the root of a namespace. StaleNodeError once stale."""
        self.forest.enter()
        place_of(self.forest, &self.handle, self.name)
        return self.handle.length == 0

    @property
    def extra_key(self):
        """The namespace: None for the default one, else the pair. StaleNodeError once stale."""
        self.forest.enter()
        place_of(self.forest, &self.handle, self.name)
        return self.name

    def __eq__(self, other):
        cdef Node node
        if type(other) is not Node:
            return NotImplemented
        node = other
        return (
            self.forest is node.forest
            and self.handle.length == node.handle.length
            and self.handle.creation == node.handle.creation
            and (self.handle.length != 0 or self.name == node.name)
        )

    def __hash__(self):
        return hash((self.handle.creation, self.handle.length, self.name))

    def __repr__(self):
        namespace = "" if self.name is None else f", extra_key={self.name!r}"
        try:
            self.is_root
            stale = ""
        except StaleNodeError:
            stale = ", stale"
        return f"Node(length={self.handle.length}{namespace}{stale})"

    __reduce__ = _no_copy


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class MatchResult:
    """What ``match_prefix`` found (see `triradix.MatchResult`)."""

    def __cinit__(self):
        self.forest = nowhere

    def __init__(self):
        cannot_be_made(self)

    @property
    def length(self):
        """Units matched, from the root."""
        return self.handle.length

    @property
    def node(self):
        """The deepest matched page, or the root."""
        if self.cached_node is None:
            self.cached_node = new_node(self.forest, self.name, self.handle)
        return self.cached_node

    @property
    def indices(self):
        """The slots of this key's matched units, read-only. StaleNodeError if ``node`` is stale on first use."""
        if self.cached_indices is None:
            array = path_slots(self.forest, &self.handle, self.name, self.start)
            if self.cached_indices is None:
                self.cached_indices = array
        return self.cached_indices

    def __repr__(self):
        return f"MatchResult(length={self.handle.length})"

    __reduce__ = _no_copy


@cython.final
@cython.no_gc
cdef class BatchMatchResult:
    """What ``match_prefix_many`` found (see `triradix.BatchMatchResult`)."""

    def __cinit__(self):
        self.forest = nowhere

    def __init__(self):
        cannot_be_made(self)

    def __dealloc__(self):
        free(self.handles)

    @property
    def lengths(self):
        """Units matched, shape ``(n,)``, read-only."""
        if self.cached_lengths is None:
            array = new_read_only_array(self.count)
            for i in range(self.count):
                array_data(array)[i] = self.handles[i].length
            self.cached_lengths = array
        return self.cached_lengths

    @property
    def nodes(self):
        """The deepest matched page of each key."""
        cdef list nodes = []
        cdef Py_ssize_t i
        if self.cached_nodes is None:
            for i in range(self.count):
                nodes.append(new_node(self.forest, self.name_at(i), self.handles[i]))
            self.cached_nodes = tuple(nodes)
        return self.cached_nodes

    @property
    def indices(self):
        """The slots of all keys one after the other, read-only. StaleNodeError if any node is stale on first use."""
        cdef int64_t total = 0
        cdef int64_t *slots
        cdef Py_ssize_t i
        if self.cached_indices is None:
            for i in range(self.count):
                total += self.handles[i].length
            array = new_read_only_array(total)
            slots = array_data(array)
            self.forest.enter()
            for i in range(self.count):
                gather(&self.forest.tree, place_of(self.forest, &self.handles[i], self.name_at(i)), 0, slots)
                slots += self.handles[i].length
            if self.cached_indices is None:
                self.cached_indices = array
        return self.cached_indices

    @property
    def offsets(self):
        """Where each key's slots begin in ``indices``, and the end of the last, shape ``(n + 1,)``, read-only.

        StaleNodeError if any node is stale on first use.
        """
        cdef int64_t total = 0
        cdef Py_ssize_t i
        if self.cached_offsets is None:
            array = new_read_only_array(self.count + 1)
            self.forest.enter()
            for i in range(self.count):
                place_of(self.forest, &self.handles[i], self.name_at(i))
                array_data(array)[i] = total
                total += self.handles[i].length
            array_data(array)[self.count] = total
            if self.cached_offsets is None:
                self.cached_offsets = array
        return self.cached_offsets

    cdef object name_at(self, Py_ssize_t i):
        return None if self.names is None else self.names[i]

    def __repr__(self):
        return f"BatchMatchResult({self.count} keys)"

    __reduce__ = _no_copy


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class InsertResult:
    """What ``insert`` did (see `triradix.InsertResult`)."""

    def __cinit__(self):
        self.forest = nowhere

    def __init__(self):
        cannot_be_made(self)

    @property
    def prefix_len(self):
        """Units that were cached already, from the root."""
        return self.prefix

    @property
    def length(self):
        """Units that are cached now, from the root."""
        return self.handle.length

    @property
    def node(self):
        """The last page of the key, or the root."""
        if self.cached_node is None:
            self.cached_node = new_node(self.forest, self.name, self.handle)
        return self.cached_node

    def __repr__(self):
        return f"InsertResult(prefix_len={self.prefix}, length={self.handle.length})"

    __reduce__ = _no_copy


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class EvictResult:
    """What ``evict`` freed (see `triradix.EvictResult`)."""

    def __init__(self):
        cannot_be_made(self)

    @property
    def num_tokens(self):
        """Units freed."""
        return self.freed

    @property
    def indices(self):
        """Their slots, page by page in the order of eviction."""
        return self.slots

    def __repr__(self):
        return f"EvictResult(num_tokens={self.freed})"

    __reduce__ = _no_copy


cdef Node new_node(Forest forest, object name, Handle handle):
    cdef Node node = Node.__new__(Node)
    node.forest = forest
    node.name = name
    node.handle = handle
    return node
