"""The key forms of the protocol. Contiguous 32-bit and 64-bit keys and 64-bit values are read in place, the rest is
converted.

Whatever is not an exact and valid case goes to triradix.keys, which names what is wrong: one wording for all trees. A
list goes there as a tuple, which nobody can change meanwhile. Whether 64-bit keys hold tokens is not looked at here:
the tree compares them as they are, and only what it did not compare has to be checked (`check_tokens` checks all).
All of this runs before the tree is looked at, since foreign code may run here.
"""

from cpython.buffer cimport (
    PyBUF_FULL_RO, PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.list cimport PyList_AsTuple, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from triradix.arguments import as_count, as_int64, as_namespace
from triradix.keys import PrefixKey, as_slots, as_tokens

from .compare cimport are_tokens, has_negative
from .key cimport is_wide, key_count, key_of
from .memo cimport Memo, memo_make, memo_of
from .tree cimport Handle

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(PyObject *, int *) except? -1
    const int PY_LITTLE_ENDIAN

cdef extern from *:
    """
    /* The value of an int of at most 60 bits that is not negative, read by its digits; -1 for any other object. */
    static inline int64_t small_int(PyObject *item) {
        const digit *digits;
        size_t count;
        if (!PyLong_CheckExact(item)) return -1;
    #if PY_VERSION_HEX < 0x030C0000
        /* The number of digits, with the sign of the int. */
        digits = ((PyLongObject *) item)->ob_digit;
        count = (size_t) Py_SIZE(item);
    #else
        /* The number of digits stands above three bits, of which the lower two are 0 for positive ints, 1 for zero. */
        digits = ((PyLongObject *) item)->long_value.ob_digit;
        count = ((PyLongObject *) item)->long_value.lv_tag;
        if ((count & 3) == 2) return -1;
        count >>= 3;
    #endif
        if (count == 1) return digits[0];
        if (count == 2) return (int64_t) digits[1] << PyLong_SHIFT | digits[0];
        return count == 0 ? 0 : -1;
    }

    /* Where the items of a list or tuple stand. */
    static inline PyObject **items_of(PyObject *sequence) {
        return PySequence_Fast_ITEMS(sequence);
    }

    /* Items that are ints and tokens; how many there are before the first other. No foreign code runs. */
    static inline Py_ssize_t read_tokens(PyObject *const *items, Py_ssize_t count, uint32_t *target) {
        Py_ssize_t i;
        for (i = 0; i < count; i++) {
            int64_t number = small_int(items[i]);
            if ((uint64_t) number >> 32) break;
            target[i] = (uint32_t) number;
        }
        return i;
    }
    """
    int64_t small_int(PyObject *) noexcept
    PyObject **items_of(object) noexcept
    Py_ssize_t read_tokens(PyObject **, Py_ssize_t, uint32_t *) noexcept
    bint exact_int "PyLong_CheckExact"(PyObject *) noexcept
    uint16_t __builtin_bswap16(uint16_t) noexcept nogil
    uint32_t __builtin_bswap32(uint32_t) noexcept nogil
    uint64_t __builtin_bswap64(uint64_t) noexcept nogil


cdef struct Format:
    int size
    bint is_signed
    bint swapped


cdef bint read_format(const Py_buffer *view, Format *format) noexcept:
    """Whether the buffer is one-dimensional and of a single integer format."""
    cdef const char *text = view.format
    cdef char letter
    if view.ndim != 1 or view.suboffsets != NULL:
        return False
    format.size = <int> view.itemsize
    format.swapped = False
    if text == NULL:
        letter = c"B"
    else:
        letter = text[0]
        if letter in (c"@", c"=", c"<", c">", c"!"):
            if letter == c"<":
                format.swapped = not PY_LITTLE_ENDIAN
            elif letter in (c">", c"!"):
                format.swapped = PY_LITTLE_ENDIAN
            text += 1
            letter = text[0]
        if letter == 0 or text[1] != 0:
            return False
    format.is_signed = letter in (c"b", c"h", c"i", c"l", c"q", c"n")
    if not format.is_signed and letter not in (c"B", c"H", c"I", c"L", c"Q", c"N"):
        return False
    return view.itemsize in (1, 2, 4, 8)


cdef inline uint64_t read_item(const char *item, Format format) noexcept nogil:
    """An item widened to 64 bits by its sign."""
    cdef uint8_t byte
    cdef uint16_t short_word
    cdef uint32_t word
    cdef uint64_t long_word
    if format.size == 8:
        memcpy(&long_word, item, 8)
        return __builtin_bswap64(long_word) if format.swapped else long_word
    if format.size == 4:
        memcpy(&word, item, 4)
        if format.swapped:
            word = __builtin_bswap32(word)
        return <uint64_t> <int64_t> <int32_t> word if format.is_signed else word
    if format.size == 2:
        memcpy(&short_word, item, 2)
        if format.swapped:
            short_word = __builtin_bswap16(short_word)
        return <uint64_t> <int64_t> <int16_t> short_word if format.is_signed else short_word
    byte = (<const uint8_t *> item)[0]
    return <uint64_t> <int64_t> <int8_t> byte if format.is_signed else byte


cdef inline bint is_plain(const Py_buffer *view, Format format) noexcept nogil:
    """Contiguous, aligned and in the byte order of the machine."""
    return (
        not format.swapped
        and (view.strides == NULL or view.strides[0] == view.itemsize or view.shape[0] <= 1)
        and <uintptr_t> view.buf % <uintptr_t> view.itemsize == 0
    )


cdef inline void *room(Py_ssize_t count, size_t size) except NULL:
    cdef void *memory = malloc(count * size + 1)
    if memory == NULL:
        raise MemoryError
    return memory


cdef inline Py_ssize_t count_items(const Py_buffer *view) noexcept nogil:
    return view.shape[0] if view.shape != NULL else view.len // view.itemsize


cdef bint tokens_from_buffer(object key, Tokens *tokens) except -1:
    """Whether the buffer could be taken; if not, the slow way says why."""
    cdef Format format
    cdef Py_ssize_t i, step, count
    cdef uint64_t number
    cdef uint32_t *target
    cdef const char *item
    cdef bint valid = True
    try:
        PyObject_GetBuffer(key, &tokens.view, PyBUF_FULL_RO)
    except Exception:
        return False
    tokens.held = True
    if not read_format(&tokens.view, &format):
        return False
    count = count_items(&tokens.view)
    if format.size >= 4 and is_plain(&tokens.view, format):
        tokens.key = key_of(tokens.view.buf, count, format.size == 8)
        return format.size == 8 or not format.is_signed or not has_negative(<const int32_t *> tokens.view.buf, count)
    tokens.owned = room(count, sizeof(uint32_t))
    target = <uint32_t *> tokens.owned
    item = <const char *> tokens.view.buf
    step = tokens.view.strides[0] if tokens.view.strides != NULL else tokens.view.itemsize
    for i in range(count):
        number = read_item(item, format)
        valid = valid and number >> 32 == 0
        target[i] = <uint32_t> number
        item += step
    tokens.key = key_of(target, count, False)
    tokens.held = False
    PyBuffer_Release(&tokens.view)
    return valid


cdef bint tokens_from_items(object key, Py_ssize_t count, Tokens *tokens) except -1:
    """Whether all items of a list or tuple are exact ints that are tokens."""
    tokens.owned = room(count, sizeof(uint32_t))
    tokens.key = key_of(tokens.owned, count, False)
    return read_tokens(items_of(key), count, <uint32_t *> tokens.owned) == count


cdef bint tokens_from_prefix_key(object key, Tokens *tokens) except -1:
    """By the memo of the key, made at its first use. The key of no tokens has none."""
    cdef Memo memo = memo_of(key)
    if memo is None:
        array = key.tokens
        if not tokens_from_buffer(array, tokens) or tokens.owned != NULL or is_wide(tokens.key):
            return False
        if key_count(tokens.key) == 0:
            return True
        memo = memo_make(key, array, <const uint32_t *> tokens.key.data, key_count(tokens.key))
        tokens.held = False
        PyBuffer_Release(&tokens.view)
    Py_INCREF(memo)
    tokens.memo = <PyObject *> memo
    tokens.key = key_of(memo.tokens, memo.count, False)
    return True


cdef int take_slowly(object key, Tokens *tokens) except -1:
    """A copy that nobody else can change, or the error of the key. Ends what was taken before."""
    cdef Py_ssize_t count
    release_tokens(tokens)
    tokens.key = key_of(NULL, 0, False)
    array = as_tokens(PyList_AsTuple(key) if isinstance(key, list) else key)
    PyObject_GetBuffer(array, &tokens.view, PyBUF_SIMPLE)
    tokens.held = True
    count = tokens.view.len // <Py_ssize_t> sizeof(uint32_t)
    tokens.owned = room(count, sizeof(uint32_t))
    memcpy(tokens.owned, tokens.view.buf, count * sizeof(uint32_t))
    tokens.key = key_of(tokens.owned, count, False)
    return 0


cdef int take_tokens(object key, Tokens *tokens) except -1:
    """Take a key; `release_tokens` ends it. If it is wide, its numbers are still to be checked."""
    cdef bint taken = False
    tokens.owned = NULL
    tokens.memo = NULL
    tokens.held = False
    tokens.key = key_of(NULL, 0, False)
    if isinstance(key, list):
        taken = tokens_from_items(key, PyList_GET_SIZE(key), tokens)
    elif isinstance(key, tuple):
        taken = tokens_from_items(key, PyTuple_GET_SIZE(key), tokens)
    elif PyObject_CheckBuffer(key):
        taken = tokens_from_buffer(key, tokens)
    elif isinstance(key, PrefixKey):
        taken = tokens_from_prefix_key(key, tokens)
    if not taken:
        take_slowly(key, tokens)
    return 0


cdef int check_tokens(object key, Tokens *tokens) except -1:
    """Check a key whole: ValueError names the first number that is no token."""
    if not are_tokens(tokens.key):
        take_slowly(key, tokens)
    return 0


cdef const Handle *recall(const Tokens *tokens, int64_t cache) noexcept:
    """The page of that cache where a `PrefixKey` was found last, or NULL."""
    cdef Memo memo
    if tokens.memo == NULL:
        return NULL
    memo = <Memo> tokens.memo
    return &memo.handle if memo.cache == cache else NULL


cdef void remember(const Tokens *tokens, int64_t cache, const Handle *handle) noexcept:
    """Where it was found now."""
    if tokens.memo != NULL and handle.length:
        (<Memo> tokens.memo).cache = cache
        (<Memo> tokens.memo).handle = handle[0]


cdef void release_tokens(Tokens *tokens) noexcept:
    if tokens.owned != NULL:
        free(tokens.owned)
        tokens.owned = NULL
    if tokens.memo != NULL:
        Py_XDECREF(tokens.memo)
        tokens.memo = NULL
    if tokens.held:
        tokens.held = False
        PyBuffer_Release(&tokens.view)


cdef bint slots_from_buffer(object values, Slots *slots) except -1:
    cdef Format format
    cdef Py_ssize_t i, step
    cdef uint64_t number
    cdef uint64_t seen = 0
    cdef int64_t *target
    cdef const char *item
    try:
        PyObject_GetBuffer(values, &slots.view, PyBUF_FULL_RO)
    except Exception:
        return False
    slots.held = True
    if not read_format(&slots.view, &format):
        return False
    slots.count = count_items(&slots.view)
    if format.size == 8 and format.is_signed and is_plain(&slots.view, format):
        slots.data = <const int64_t *> slots.view.buf
        return True
    slots.owned = room(slots.count, sizeof(int64_t))
    target = <int64_t *> slots.owned
    item = <const char *> slots.view.buf
    step = slots.view.strides[0] if slots.view.strides != NULL else slots.view.itemsize
    for i in range(slots.count):
        number = read_item(item, format)
        seen |= number
        target[i] = <int64_t> number
        item += step
    slots.data = target
    slots.held = False
    PyBuffer_Release(&slots.view)
    return format.is_signed or seen >> 63 == 0


cdef bint slots_from_items(object values, Py_ssize_t count, Slots *slots) except -1:
    cdef Py_ssize_t i
    cdef int overflow = 0
    cdef int64_t *target
    cdef PyObject **items = items_of(values)
    slots.count = count
    slots.owned = room(count, sizeof(int64_t))
    target = <int64_t *> slots.owned
    slots.data = target
    for i in range(count):
        target[i] = small_int(items[i])
        if target[i] < 0:
            if not exact_int(items[i]):
                return False
            target[i] = PyLong_AsLongLongAndOverflow(items[i], &overflow)
            if overflow:
                return False
    return True


cdef void no_slots(Slots *slots) noexcept:
    slots.owned = NULL
    slots.held = False
    slots.count = 0
    slots.data = NULL


cdef int take_slots(object values, Slots *slots) except -1:
    """Check and take values; `release_slots` ends it. They are opaque, so others may change them meanwhile."""
    cdef bint taken = False
    no_slots(slots)
    if isinstance(values, list):
        taken = slots_from_items(values, PyList_GET_SIZE(values), slots)
    elif isinstance(values, tuple):
        taken = slots_from_items(values, PyTuple_GET_SIZE(values), slots)
    elif PyObject_CheckBuffer(values):
        taken = slots_from_buffer(values, slots)
    if not taken:
        release_slots(slots)
        array = as_slots(PyList_AsTuple(values) if isinstance(values, list) else values)
        PyObject_GetBuffer(array, &slots.view, PyBUF_SIMPLE)
        slots.held = True
        slots.count = slots.view.len // <Py_ssize_t> sizeof(int64_t)
        slots.owned = room(slots.count, sizeof(int64_t))
        memcpy(slots.owned, slots.view.buf, slots.count * sizeof(int64_t))
        slots.data = <const int64_t *> slots.owned
    return 0


cdef void release_slots(Slots *slots) noexcept:
    free(slots.owned)
    slots.owned = NULL
    if slots.held:
        slots.held = False
        PyBuffer_Release(&slots.view)


cdef Py_ssize_t length_of(object values) except -1:
    """``len(values)``; of a list or tuple what it stores, whatever a subclass says."""
    if isinstance(values, list):
        return PyList_GET_SIZE(values)
    if isinstance(values, tuple):
        return PyTuple_GET_SIZE(values)
    try:
        return len(values)
    except TypeError:
        raise TypeError(
            f"values must be a list, a tuple, an integer buffer or a PrefixKey, not {type(values).__name__}"
        ) from None


cdef int same_length(Py_ssize_t values, Py_ssize_t tokens) except -1:
    if values != tokens:
        raise ValueError(
            f"values has {values} elements, for a key of {tokens} tokens; there must be one for each token"
        )
    return 0


cdef object namespace_of(object extra_key):
    """The pair, or None for the default namespace."""
    cdef tuple pair
    if extra_key is None:
        return None
    if type(extra_key) is str and (<str> extra_key).isascii():
        return (extra_key, None)
    pair = as_namespace(extra_key)
    return None if pair[0] is None and pair[1] is None else pair


cdef int64_t count_of(object value, str name) except -1:
    """A number of zero or more; larger ones than int64 holds count as its largest."""
    cdef object number
    cdef int overflow = 0
    cdef int64_t result = small_int(<PyObject *> value)
    if result < 0:
        number = as_count(value, name)
        result = PyLong_AsLongLongAndOverflow(<PyObject *> number, &overflow)
    return INT64_MAX if overflow else result


cdef int64_t int64_of(object value, str name) except? -1:
    cdef int64_t result = small_int(<PyObject *> value)
    return result if result >= 0 else as_int64(value, name)
