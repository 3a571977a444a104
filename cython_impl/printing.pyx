"""`pretty_print`: first a plain copy of what is to be shown, then its text: foreign code may run at each write."""

import sys

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from .spaces cimport Forest
from .tree cimport Run, Tree, detail_of, length_of_run, run_at

cdef enum:
    SHOWN = 8    # tokens of a run


cdef struct Row:
    uint32_t run
    uint32_t parent
    int64_t start
    int64_t end
    int64_t locked_end
    uint32_t[SHOWN] tokens
    int64_t tokens_count


cdef Row *copy_rows(const Tree *tree, Py_ssize_t *count) except NULL:
    cdef Row *rows = <Row *> malloc((tree.runs.used + 1) * sizeof(Row))
    cdef uint32_t at
    cdef int64_t i
    cdef const Run *run
    cdef Row *row
    if rows == NULL:
        raise MemoryError
    count[0] = 0
    for at in range(1, tree.runs.used):
        run = run_at(tree, at)
        if detail_of(tree, at).space == 0:
            continue
        row = &rows[count[0]]
        count[0] += 1
        row.run = at
        row.parent = run.parent
        row.start = run.start
        row.end = run.end
        row.locked_end = detail_of(tree, at).locked_end
        row.tokens_count = 0
        if run.parent:
            row.tokens_count = length_of_run(run) + tree.overlap
            for i in range(min(row.tokens_count, <int64_t> SHOWN)):
                row.tokens[i] = run.tokens[i]
    return rows


cdef str line_of(const Row *row):
    cdef int64_t i
    cdef list numbers = []
    for i in range(min(row.tokens_count, <int64_t> SHOWN)):
        numbers.append(str(row.tokens[i]))
    tokens = " ".join(numbers)
    more = f" … {row.tokens_count} tokens" if row.tokens_count > SHOWN else ""
    locked = f", locked to {row.locked_end}" if row.locked_end > row.start else ""
    return f"[{tokens}{more}] units {row.start} … {row.end}{locked}"


cdef object print_forest(Forest forest, object title, object file):
    """One line a run, indented by how many runs are above it (at most 40 steps, then the number)."""
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t i
    cdef Row *rows
    cdef dict below = {}
    cdef dict roots
    cdef list waiting = []
    if file is None:
        file = sys.stdout
        if file is None:    # a process without a console: silent, as print is
            return
    forest.enter()
    rows = copy_rows(&forest.tree, &count)
    try:
        # Names that go or come from here on only leave a root without its name.
        roots = {forest.root_of(name).run: name for name in list(forest.names)}
        for i in range(count):
            if rows[i].parent:
                below.setdefault(rows[i].parent, []).append(i)
            else:
                waiting.append((i, 0))
        file.write(f"{title}\n")
        while waiting:
            i, depth = waiting.pop()
            indent = "  " * min(depth, 40) + (f"({depth}) " if depth > 40 else "")
            if rows[i].parent:
                file.write(f"{indent}{line_of(&rows[i])}\n")
            else:
                file.write(f"namespace {roots.get(rows[i].run)!r}\n")
            for child in below.get(rows[i].run, ()):
                waiting.append((child, depth + 1))
    finally:
        free(rows)
