"""From what the caller gave to tokens and slots."""

from cpython.buffer cimport Py_buffer
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from .key cimport Key
from .tree cimport Handle


cdef struct Tokens:
    Key key
    void *owned          # what is to be freed
    PyObject *memo       # of a `PrefixKey`: a strong reference, which keeps the tokens
    bint held            # whether the view is to be released
    Py_buffer view


cdef struct Slots:
    const int64_t *data
    Py_ssize_t count
    void *owned
    bint held
    Py_buffer view


cdef int take_tokens(object key, Tokens *tokens) except -1
cdef int check_tokens(object key, Tokens *tokens) except -1
cdef int take_slowly(object key, Tokens *tokens) except -1
cdef const Handle *recall(const Tokens *tokens, int64_t cache) noexcept
cdef void remember(const Tokens *tokens, int64_t cache, const Handle *handle) noexcept
cdef void release_tokens(Tokens *tokens) noexcept
cdef void no_slots(Slots *slots) noexcept
cdef int take_slots(object values, Slots *slots) except -1
cdef void release_slots(Slots *slots) noexcept
cdef Py_ssize_t length_of(object values) except -1
cdef int same_length(Py_ssize_t values, Py_ssize_t tokens) except -1
cdef object namespace_of(object extra_key)
cdef int64_t count_of(object value, str name) except -1
cdef int64_t int64_of(object value, str name) except? -1
