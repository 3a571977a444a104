/* Preloaded into a Python, with PYTHONMALLOC=malloc: memory that runs out at one chosen allocation of a call.
 *
 * `call_refusing(callable, spared, count)` calls it; of its allocations the first `spared` are granted, the next `count`
 * are answered by NULL, and what comes after them is granted again. `was_refused()` tells whether it came to that. */
#include <errno.h>
#include <stddef.h>

#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))

THREAD_LOCAL long granted = 0;
THREAD_LOCAL long refusals = 0;
THREAD_LOCAL int refused = 0;

extern void *PyObject_CallNoArgs(void *callable);
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static int refuses(void) {
    if (refusals == 0 || granted-- > 0)
        return 0;
    granted = 0;
    refusals--;
    refused = 1;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) {
    return refuses() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return refuses() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    return refuses() ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return refuses() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *made = refuses() ? NULL : __libc_memalign(alignment, size);
    if (made == NULL)
        return ENOMEM;
    *block = made;
    return 0;
}

void *call_refusing(void *callable, long spared, long count) {
    void *result;
    granted = spared;
    refused = 0;
    refusals = count;
    result = PyObject_CallNoArgs(callable);
    refusals = 0;
    return result;
}

int was_refused(void) {
    return refused;
}
