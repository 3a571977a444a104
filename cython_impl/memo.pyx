"""What the Cython tree remembers of a `PrefixKey`: where its tokens are, and the page where it was found last.

A page means the same tokens for ever, so a key that was found there once begins with them: as long as the page exists,
the next look-up goes on below it. A request that waits in a queue pays for what is new.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t

cdef str NAME = "cython"


@cython.final
@cython.no_gc
cdef class Memo:
    """Belongs to one key."""


cdef Memo in_dict(object memos):
    cdef PyObject *found = NULL
    if isinstance(memos, dict):
        found = PyDict_GetItem(memos, NAME)
    return <Memo> found if found != NULL and type(<object> found) is Memo else None


cdef Memo memo_of(object key):
    """The memo of a `PrefixKey` that was used before, or None."""
    return in_dict(key.memo)


cdef Memo memo_make(object key, object array, const uint32_t *tokens, int64_t count):
    """The memo of a key that is used for the first time.

    What the key that it was made from was found at is known of it too, as far as they share tokens.
    """
    cdef Memo memo = Memo.__new__(Memo)
    cdef Memo of_origin
    cdef object origin = key.origin
    memo.array = array
    memo.tokens = tokens
    memo.count = count
    if origin is not None:
        of_origin = in_dict(origin[0])
        # One token more than units, in case units are pairs.
        if of_origin is not None and of_origin.cache and of_origin.handle.length < <int64_t> origin[1]:
            memo.cache = of_origin.cache
            memo.handle = of_origin.handle
    key.memo[NAME] = memo
    return memo
