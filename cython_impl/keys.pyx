"""The key forms of the protocol. Contiguous 32-bit keys and 64-bit values are read in place, the rest is converted.

Whatever is not an exact and valid case goes to triradix.keys, which names what is wrong: one wording for all trees. A
list goes there as a tuple, which nobody can change meanwhile.
All of this runs before the tree is looked at, since foreign code may run here.
"""

from cpython.buffer cimport (
    PyBUF_FULL_RO, PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.list cimport PyList_AsTuple, PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from triradix.arguments import as_count, as_int64, as_namespace
from triradix.keys import PrefixKey, as_slots, as_tokens

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(PyObject *, int *) except? -1
    const int PY_LITTLE_ENDIAN
    # Borrowed: no foreign code runs between this and the use of the item.
    PyObject *list_item "PyList_GET_ITEM"(object, Py_ssize_t) noexcept
    PyObject *tuple_item "PyTuple_GET_ITEM"(object, Py_ssize_t) noexcept

cdef extern from *:
    """
    /* The value of a small int that is not negative, read in place; -1 for any other. */
    static inline long long small_int(PyObject *number) {
    #if PY_VERSION_HEX < 0x030C0000
        const digit *digits = ((PyLongObject *) number)->ob_digit;
        switch (Py_SIZE(number)) {
            case 0: return 0;
            case 1: return digits[0];
            case 2: return (long long) digits[1] << PyLong_SHIFT | digits[0];
            default: return -1;
        }
    #else
        const PyLongObject *value = (const PyLongObject *) number;
        return PyUnstable_Long_IsCompact(value) ? (long long) PyUnstable_Long_CompactValue(value) : -1;
    #endif
    }
    """
    long long small_int(PyObject *) noexcept
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


cdef bint narrow(const uint64_t *source, uint32_t *target, Py_ssize_t count) noexcept nogil:
    """64-bit integers to tokens; whether all of them are tokens."""
    cdef uint64_t seen = 0
    cdef Py_ssize_t i
    for i in range(count):
        seen |= source[i]
        target[i] = <uint32_t> source[i]
    return seen >> 32 == 0


cdef bint all_non_negative(const int32_t *source, Py_ssize_t count) noexcept nogil:
    cdef int32_t seen = 0
    cdef Py_ssize_t i
    for i in range(count):
        seen |= source[i]
    return seen >= 0


cdef bint tokens_from_buffer(object key, Tokens *tokens, bint private) except -1:
    """Whether the buffer could be taken; if not, the slow way says why."""
    cdef Format format
    cdef Py_ssize_t i, step
    cdef uint64_t number
    cdef uint32_t *target
    cdef const char *item
    cdef bint valid = True
    cdef bint plain
    try:
        PyObject_GetBuffer(key, &tokens.view, PyBUF_FULL_RO)
    except Exception:
        return False
    tokens.held = True
    if not read_format(&tokens.view, &format):
        return False
    tokens.count = count_items(&tokens.view)
    plain = is_plain(&tokens.view, format)
    if plain and format.size == 4:
        valid = not format.is_signed or all_non_negative(<const int32_t *> tokens.view.buf, tokens.count)
        if not private or not valid:
            tokens.data = <const uint32_t *> tokens.view.buf
            return valid
    tokens.owned = room(tokens.count, sizeof(uint32_t))
    target = <uint32_t *> tokens.owned
    if plain and format.size == 4:
        memcpy(target, tokens.view.buf, tokens.count * sizeof(uint32_t))
    elif plain and format.size == 8:
        valid = narrow(<const uint64_t *> tokens.view.buf, target, tokens.count)
    else:
        item = <const char *> tokens.view.buf
        step = tokens.view.strides[0] if tokens.view.strides != NULL else tokens.view.itemsize
        for i in range(tokens.count):
            number = read_item(item, format)
            valid = valid and number >> 32 == 0
            target[i] = <uint32_t> number
            item += step
    tokens.data = target
    tokens.held = False
    PyBuffer_Release(&tokens.view)
    return valid


cdef bint tokens_from_list(object key, Tokens *tokens) except -1:
    """Whether all items are exact ints that are tokens."""
    cdef Py_ssize_t i
    cdef long long number
    cdef int overflow = 0
    cdef uint32_t *target
    cdef bint listed = isinstance(key, list)
    cdef PyObject *item
    tokens.count = PyList_GET_SIZE(key) if listed else PyTuple_GET_SIZE(key)
    tokens.owned = room(tokens.count, sizeof(uint32_t))
    target = <uint32_t *> tokens.owned
    tokens.data = target
    for i in range(tokens.count):
        item = list_item(key, i) if listed else tuple_item(key, i)
        if not PyLong_CheckExact(<object> item):
            return False
        number = small_int(item)
        if number < 0:
            number = PyLong_AsLongLongAndOverflow(item, &overflow)
        if overflow or number < 0 or number > <long long> 0xFFFFFFFF:
            return False
        target[i] = <uint32_t> number
    return True


cdef int take_tokens(object key, Tokens *tokens, bint private) except -1:
    """Check and take a key; `release_tokens` ends it. ``private``: nobody else can change what ``data`` points to."""
    cdef bint taken = False
    tokens.owned = NULL
    tokens.held = False
    tokens.count = 0
    tokens.data = NULL
    if isinstance(key, (list, tuple)):
        taken = tokens_from_list(key, tokens)
    elif PyObject_CheckBuffer(key):
        taken = tokens_from_buffer(key, tokens, private)
    elif isinstance(key, PrefixKey):
        taken = tokens_from_buffer(key.tokens, tokens, private)
    if not taken:
        release_tokens(tokens)
        array = as_tokens(PyList_AsTuple(key) if isinstance(key, list) else key)
        PyObject_GetBuffer(array, &tokens.view, PyBUF_SIMPLE)
        tokens.held = True
        tokens.count = tokens.view.len // <Py_ssize_t> sizeof(uint32_t)
        tokens.owned = room(tokens.count, sizeof(uint32_t))
        memcpy(tokens.owned, tokens.view.buf, tokens.count * sizeof(uint32_t))
        tokens.data = <const uint32_t *> tokens.owned
    return 0


cdef void release_tokens(Tokens *tokens) noexcept:
    free(tokens.owned)
    tokens.owned = NULL
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


cdef bint slots_from_list(object values, Slots *slots) except -1:
    cdef Py_ssize_t i
    cdef int overflow = 0
    cdef int64_t *target
    cdef bint listed = isinstance(values, list)
    cdef PyObject *item
    slots.count = PyList_GET_SIZE(values) if listed else PyTuple_GET_SIZE(values)
    slots.owned = room(slots.count, sizeof(int64_t))
    target = <int64_t *> slots.owned
    slots.data = target
    for i in range(slots.count):
        item = list_item(values, i) if listed else tuple_item(values, i)
        if not PyLong_CheckExact(<object> item):
            return False
        target[i] = small_int(item)
        if target[i] < 0:
            target[i] = PyLong_AsLongLongAndOverflow(item, &overflow)
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
    if isinstance(values, (list, tuple)):
        taken = slots_from_list(values, slots)
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
    cdef object number = as_count(value, name)
    cdef int overflow = 0
    cdef int64_t result = PyLong_AsLongLongAndOverflow(<PyObject *> number, &overflow)
    return INT64_MAX if overflow else result


cdef int64_t int64_of(object value, str name) except? -1:
    return as_int64(value, name)
