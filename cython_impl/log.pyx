"""What the tree notes for `triradix.log`: nothing unless asked, and then after the operation."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc

from triradix.log import listen, tell

from .spaces cimport Forest
from .tree cimport Note, Notes, Tree


def _listen(uint32_t kinds):
    global listening
    listening = kinds


listen("cython", _listen)


cdef void keep_note(Tree *tree, uint32_t kind, int64_t first, int64_t second) noexcept nogil:
    """Without memory for it there is no note: a log makes no operation fail."""
    cdef Notes *noted = tree.noted
    cdef Note *notes
    if noted == NULL:
        noted = tree.noted = <Notes *> calloc(1, sizeof(Notes))
        if noted == NULL:
            return
    if noted.count == noted.room:
        notes = <Note *> realloc(noted.notes, (2 * noted.room + 32) * sizeof(Note))
        if notes == NULL:
            return
        noted.notes = notes
        noted.room = 2 * noted.room + 32
    notes = noted.notes + noted.count
    notes.kind, notes.first, notes.second = kind, first, second
    noted.count += 1


cdef void notes_free(Notes *noted) noexcept nogil:
    if noted != NULL:
        free(noted.notes)
        free(noted)


cdef object hand_over(Forest forest):
    """Between operations, where something is noted."""
    cdef Notes *noted
    cdef const Note *note
    cdef uint32_t i
    cdef list told = []
    forest.enter()
    noted = forest.tree.noted
    forest.tree.noted = NULL
    try:
        for i in range(noted.count if noted != NULL else 0):
            note = noted.notes + i
            told.append((note.kind, note.first, note.second))
        tell("cython", told)
    except Exception:
        pass    # the operation is done: without memory nobody is told
    finally:
        notes_free(noted)
    return None
