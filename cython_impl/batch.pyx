"""Batches: first all keys are taken, then the tree is worked on in chunks without the GIL.

Nothing is done if one of the keys is bad. Where all of them make one chunk, the look-ups notice, and nothing is written
before they are over; else all keys are looked at first, without the GIL too.

A chunk is small enough for Ctrl-C to be heard soon after it, and what other threads do falls between two chunks.
Several cores look the keys of a chunk up side by side, which changes nothing; what matches leave is written after that,
in the order of the keys.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_AsTuple
from cpython.tuple cimport PyTuple_GetSlice
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from collections.abc import Sequence

from triradix.arguments import as_threads

from .births cimport find_page
from .compare cimport are_tokens
from .exclusive cimport batches_begin, batches_end
from .keys cimport Tokens, namespace_of, recall, release_tokens, remember, take_slowly, take_tokens
from .key cimport Key, key_count
from .prefetch cimport GROUP, go_ahead, touch_ahead
from .results cimport BatchMatchResult, array_data, new_array
from .spaces cimport Forest
from .threads cimport Lookups, cores, look_up_all
from .tree cimport Handle, Place, Tree
from .walk cimport (
    DONE, NO_MEMORY, OUTSIDE, Answer, match_pages, merge_if_due, note_match, units_of, walk_on,
)

cdef Py_ssize_t CHUNK_KEYS = 1 << 14
cdef Py_ssize_t FEW = 8               # keys that are served without going ahead
cdef Py_ssize_t SHARE = 128           # keys for each core, at least: to begin a thread takes as long as some look-ups
cdef int64_t FAR = 2 << 20            # bytes of a tree; a smaller one lies in a near cache: going ahead costs more
cdef Py_ssize_t LOOKED_AT = 1 << 12   # keys that are looked at before signals are
cdef int64_t CHUNK_UNITS = 1 << 23    # milliseconds: to get the GIL back takes 5 of them where another thread uses it


cdef tuple sequence_of(object source, str what):
    """The elements of a sequence, as they are now."""
    if isinstance(source, list):
        return PyList_AsTuple(source)
    if isinstance(source, tuple):
        return PyTuple_GetSlice(source, 0, len(<tuple> source))
    if isinstance(source, str) or PyObject_CheckBuffer(source) or not isinstance(source, Sequence):
        raise TypeError(f"{what} must be a sequence, not {type(source).__name__}")
    return tuple(source)


cdef object located(object error, str where):
    """The same exception with a message that says which element is meant."""
    return (TypeError if isinstance(error, TypeError) else ValueError)(f"{where}: {error}")


cdef class Batch:
    """The keys of one call, converted."""

    cdef Forest forest
    cdef Py_ssize_t count
    cdef tuple items
    cdef Tokens *tokens
    cdef Key *keys       # the same, side by side
    cdef Place *roots
    cdef Handle *known   # a page that the key is known to begin with; of length 0: none
    cdef list names      # None: all in the default namespace
    cdef int threads     # how many cores share the work
    cdef bint at_once    # whether all keys make one chunk
    cdef Place *places   # where the look-ups of a chunk ended, if they come before what they write
    cdef Py_ssize_t failed   # the key that stopped a chunk

    def __init__(self, Forest forest, keys, extra_keys, threads):
        cdef tuple items = sequence_of(keys, "keys")
        cdef Py_ssize_t i
        cdef int64_t tokens = 0
        self.forest = forest
        self.items = items
        self.tokens = <Tokens *> calloc(len(items) + 1, sizeof(Tokens))
        self.roots = <Place *> calloc(len(items) + 1, sizeof(Place))
        self.known = <Handle *> calloc(len(items) + 1, sizeof(Handle))
        self.keys = <Key *> calloc(len(items) + 1, sizeof(Key))
        if self.keys == NULL or self.tokens == NULL or self.roots == NULL or self.known == NULL:
            raise MemoryError
        for i in range(len(items)):
            self.count = i + 1
            if i % 256 == 255:
                PyErr_CheckSignals()
            try:
                take_tokens(items[i], &self.tokens[i])
            except (TypeError, ValueError) as error:
                self.look_at(i)
                raise located(error, f"keys[{i}]") from None
            self.keys[i] = self.tokens[i].key
            tokens += key_count(self.keys[i])
        self.at_once = self.count <= CHUNK_KEYS and tokens <= CHUNK_UNITS
        if not self.at_once:
            self.look_at(self.count)
        try:
            if extra_keys is not None:
                self.take_names(extra_keys)
            self.share(as_threads(threads))
        except (TypeError, ValueError):
            self.look_at(self.count)
            raise

    cdef int look_at(self, Py_ssize_t count) except -1:
        """Check the first ``count`` keys whole: of several bad ones the first is named, before what else is wrong."""
        cdef Py_ssize_t first, end, wrong
        for first in range(0, count, LOOKED_AT):
            end = min(first + LOOKED_AT, count)
            with nogil:
                wrong = first_bad(self.keys, first, end)
            while wrong < end:
                self.take_copy(wrong)
                wrong = first_bad(self.keys, wrong + 1, end)
            PyErr_CheckSignals()
        return 0

    cdef int share(self, object threads) except -1:
        """Decide how many cores help; None: as many as there are."""
        cdef int most = cores() if threads is None else min(threads, cores())
        self.threads = <int> min(most, self.count // SHARE)
        if self.threads > 1 or self.at_once:
            self.places = <Place *> malloc((min(self.count, CHUNK_KEYS) + 1) * sizeof(Place))
            if self.places == NULL:
                raise MemoryError
        return 0

    cdef int take_names(self, object extra_keys) except -1:
        cdef tuple items = sequence_of(extra_keys, "extra_keys")
        cdef Py_ssize_t i
        if len(items) != self.count:
            raise ValueError(f"extra_keys has {len(items)} elements, keys has {self.count}; they must be as many")
        self.names = []
        for i in range(self.count):
            try:
                self.names.append(namespace_of(items[i]))
            except (TypeError, ValueError) as error:
                raise located(error, f"extra_keys[{i}]") from None
        return 0

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            release_tokens(&self.tokens[i])
        free(self.tokens)
        free(self.keys)
        free(self.roots)
        free(self.known)
        free(self.places)

    cdef Py_ssize_t run(self, Handle *handles, int64_t *lengths) except -1:
        """Match (to ``handles``) or peek (to ``lengths``) all keys."""
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t end, done, i
        cdef Answer answer = DONE
        while at < self.count:
            self.forest.enter()
            end = self.prepare(at)
            if batches_begin():
                self.forest.busy = 1
                with nogil:
                    done = self.work(at, end, handles, lengths, &answer)
                    self.forest.leave()
                    batches_end()
            else:
                done = self.work(at, end, handles, lengths, &answer)
            if handles != NULL:
                for i in range(at, done):
                    remember(&self.tokens[i], self.forest.number, &handles[i])
            at = done
            if done < end:
                self.try_again(answer)
            self.forest.yield_to_waiting()
            PyErr_CheckSignals()
        return 0

    cdef Py_ssize_t work(
        self, Py_ssize_t at, Py_ssize_t end, Handle *handles, int64_t *lengths, Answer *answer
    ) noexcept nogil:
        """Serve the keys from ``at`` on; return the first that was not served, and say in ``answer`` why."""
        cdef Tree *tree = &self.forest.tree
        cdef Lookups lookups
        cdef Py_ssize_t bad, done
        cdef int threads = <int> min(<Py_ssize_t> self.threads, (end - at) // SHARE)
        if threads < 2 and not self.at_once:
            self.failed = work_alone(tree, self.keys, self.roots, self.known, at, end, handles, lengths, answer)
            return self.failed
        lookups.tree = tree
        lookups.keys = self.keys + at
        lookups.roots = self.roots + at
        lookups.known = self.known + at
        lookups.handles = handles + at
        lookups.places = self.places
        lookups.lengths = lengths + at if lengths != NULL else NULL
        lookups.next = 0
        lookups.end = end - at
        lookups.ahead = goes_ahead(tree, end - at)
        look_up_all(&lookups, threads)
        bad = first_outside(self.places, end - at)
        if bad < end - at and (self.at_once or lengths != NULL):
            self.failed = at + bad
            answer[0] = OUTSIDE
            return at if self.at_once else self.failed
        if lengths != NULL:
            return end
        done = note_in_order(tree, lookups.keys, self.places, lookups.handles, end - at, answer)
        self.failed = at + done
        return self.failed

    cdef int try_again(self, Answer answer) except -1:
        """Say what is wrong with a key, or go on with a copy of one that another thread has changed meanwhile."""
        if answer == NO_MEMORY:
            raise MemoryError
        return self.take_copy(self.failed)

    cdef int take_copy(self, Py_ssize_t i) except -1:
        try:
            take_slowly(self.items[i], &self.tokens[i])
        except (TypeError, ValueError) as error:
            raise located(error, f"keys[{i}]") from None
        self.keys[i] = self.tokens[i].key
        return 0

    cdef Py_ssize_t prepare(self, Py_ssize_t at) except -1:
        """Look up the roots of a chunk that begins at ``at``; return where it ends."""
        cdef Py_ssize_t end = at
        cdef int64_t units = 0
        cdef Place default_root = self.forest.root_of(None)
        cdef const Handle *found
        while end < self.count and end - at < CHUNK_KEYS and units < CHUNK_UNITS:
            self.roots[end] = default_root if self.names is None else self.forest.root_of(self.names[end])
            found = recall(&self.tokens[end], self.forest.number)
            if found != NULL:
                self.known[end] = found[0]
            units += key_count(self.keys[end])
            end += 1
        return end


cdef Py_ssize_t work_alone(
    Tree *tree, const Key *keys, const Place *roots, const Handle *known, Py_ssize_t at, Py_ssize_t end,
    Handle *handles, int64_t *lengths, Answer *answer,
) noexcept nogil:
    """Serve the keys from ``at`` on; return the first that was not served, and say in ``answer`` why."""
    cdef Py_ssize_t i
    cdef Key key
    cdef const Handle *known_page
    cdef bint ahead = goes_ahead(tree, end - at)
    for i in range(at, end):
        if ahead and (i - at) % GROUP == 0:
            go_ahead(tree, keys + i, roots + i, known + i, <int> min(end - i, <Py_ssize_t> GROUP))
        key = keys[i]
        known_page = &known[i] if known[i].length else NULL
        if lengths != NULL:
            lengths[i] = walk_on(tree, roots[i], known_page, key, units_of(tree, key_count(key))).depth
        else:
            answer[0] = match_pages(tree, roots[i], known_page, key, &handles[i])
            if answer[0] != DONE:
                return i
    return end


cdef Py_ssize_t first_bad(const Key *keys, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The first key that is not of tokens, or ``end``."""
    cdef Py_ssize_t i
    for i in range(begin, end):
        if not are_tokens(keys[i]):
            return i
    return end


cdef Py_ssize_t first_outside(const Place *places, Py_ssize_t count) noexcept nogil:
    """The first look-up whose key turned out not to be of tokens, or ``count``."""
    cdef Py_ssize_t i
    for i in range(count):
        if places[i].depth < 0:
            return i
    return count


cdef bint goes_ahead(const Tree *tree, Py_ssize_t count) noexcept nogil:
    """Whether so many keys gain by going ahead."""
    return count >= FEW and tree.span_bytes >= FAR


cdef Py_ssize_t note_in_order(
    Tree *tree, const Key *keys, const Place *places, const Handle *handles, Py_ssize_t count, Answer *answer
) noexcept nogil:
    """Write what so many matches leave; return the first that cannot be, and say in ``answer`` why."""
    cdef Py_ssize_t i, j
    cdef Place place
    cdef uint32_t used = tree.runs.used
    cdef uint32_t vacant = tree.runs.free_count
    cdef bint moved = False   # whether runs have been split or merged since the look-ups
    for i in range(count):
        if i % GROUP == 0:
            for j in range(i, min(i + <Py_ssize_t> GROUP, count)):
                if places[j].depth > 0:
                    touch_ahead(tree, places[j].run)
        place = places[i]
        if place.depth < 0:
            answer[0] = OUTSIDE
            return i
        if moved and place.depth:
            place.run = find_page(tree, handles[i].birth, handles[i].creation, handles[i].length)
        if note_match(tree, place, units_of(tree, key_count(keys[i])), place.depth):
            answer[0] = NO_MEMORY
            return i
        # Both only split or both only merge, so that the counts tell.
        moved = moved or tree.runs.used != used or tree.runs.free_count != vacant
        merge_if_due(tree)
        moved = moved or tree.runs.used != used or tree.runs.free_count != vacant
    return count


cdef BatchMatchResult match_many(Forest forest, object keys, object extra_keys, object threads):
    cdef Batch batch = Batch(forest, keys, extra_keys, threads)
    cdef BatchMatchResult result = BatchMatchResult.__new__(BatchMatchResult)
    result.forest = forest
    result.names = batch.names
    result.count = batch.count
    result.handles = <Handle *> malloc((batch.count + 1) * sizeof(Handle))
    if result.handles == NULL:
        raise MemoryError
    batch.run(result.handles, NULL)
    return result


cdef object peek_many(Forest forest, object keys, object extra_keys, object threads):
    cdef Batch batch = Batch(forest, keys, extra_keys, threads)
    cdef object lengths = new_array(batch.count)
    batch.run(NULL, array_data(lengths))
    return lengths
