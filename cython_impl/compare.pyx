"""Loops over tokens, each compiled for AVX-512, for AVX2 and for any processor; at import the best is taken.

They are plain C that compilers make vectors of: whole blocks first, and the position only in the block that differs.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from .key cimport Key, is_wide, key_count

cdef extern from *:
    """
    #include <stdint.h>

    #define ALWAYS static inline __attribute__((always_inline))

    /* The tokens that both share from the front. `a` may be of 64 bits: one outside of the tokens differs from each. */
    #define COMMON(NAME, KEY, BLOCK)                                                                     \
        ALWAYS int64_t NAME(const KEY *a, const uint32_t *b, int64_t count) {                            \
            int64_t at = 0;                                                                              \
            for (; at + BLOCK <= count; at += BLOCK) {                                                   \
                KEY differ = 0;                                                                          \
                for (int i = 0; i < BLOCK; i++) differ |= a[at + i] ^ b[at + i];                         \
                if (differ) break;                                                                       \
            }                                                                                            \
            for (; at + 8 <= count; at += 8) {                                                           \
                KEY differ = 0;                                                                          \
                for (int i = 0; i < 8; i++) differ |= a[at + i] ^ b[at + i];                             \
                if (differ) break;                                                                       \
            }                                                                                            \
            while (at < count && a[at] == b[at]) at++;                                                   \
            return at;                                                                                   \
        }
    COMMON(common_narrow_with, uint32_t, 64)
    COMMON(common_wide_with, uint64_t, 32)

    /* The bits that any of them has. */
    ALWAYS uint64_t union_wide_with(const uint64_t *numbers, int64_t count) {
        uint64_t bits = 0;
        for (int64_t i = 0; i < count; i++) bits |= numbers[i];
        return bits;
    }
    ALWAYS uint32_t union_narrow_with(const uint32_t *numbers, int64_t count) {
        uint32_t bits = 0;
        for (int64_t i = 0; i < count; i++) bits |= numbers[i];
        return bits;
    }
    /* Whether each is one more than the one before. */
    ALWAYS int consecutive_with(const uint64_t *numbers, int64_t count) {
        for (int64_t at = 0; at < count; at += 64) {
            uint64_t differ = 0;
            int64_t end = at + 64 < count ? at + 64 : count;
            for (int64_t i = at; i < end; i++) differ |= numbers[i] ^ (numbers[0] + (uint64_t) i);
            if (differ) return 0;
        }
        return 1;
    }
    ALWAYS void narrow_with(const uint64_t *numbers, uint32_t *target, int64_t count) {
        for (int64_t i = 0; i < count; i++) target[i] = (uint32_t) numbers[i];
    }

    ALWAYS void widen_with(const uint32_t *numbers, int64_t *target, int64_t count) {
        for (int64_t i = 0; i < count; i++) target[i] = numbers[i];
    }
    /* The last of them first. */
    ALWAYS void widen_back_with(const uint32_t *numbers, int64_t *target, int64_t count) {
        for (int64_t i = 0; i < count; i++) target[i] = numbers[count - 1 - i];
    }
    /* From `first` on, each `step` more than the one before. */
    ALWAYS void step_with(uint64_t first, uint64_t step, uint64_t *target, int64_t count) {
        for (int64_t i = 0; i < count; i++) target[i] = first + step * (uint64_t) i;
    }

    typedef struct {
        int64_t (*common_narrow)(const uint32_t *, const uint32_t *, int64_t);
        int64_t (*common_wide)(const uint64_t *, const uint32_t *, int64_t);
        uint32_t (*union_narrow)(const uint32_t *, int64_t);
        uint64_t (*union_wide)(const uint64_t *, int64_t);
        int (*consecutive)(const uint64_t *, int64_t);
        void (*narrow)(const uint64_t *, uint32_t *, int64_t);
        void (*widen)(const uint32_t *, int64_t *, int64_t);
        void (*widen_back)(const uint32_t *, int64_t *, int64_t);
        void (*step)(uint64_t, uint64_t, uint64_t *, int64_t);
    } Loops;

    #define LOOPS(SUFFIX, TARGET)                                                                        \
        TARGET static int64_t common_narrow_##SUFFIX(const uint32_t *a, const uint32_t *b, int64_t n) {  \
            return common_narrow_with(a, b, n);                                                          \
        }                                                                                                \
        TARGET static int64_t common_wide_##SUFFIX(const uint64_t *a, const uint32_t *b, int64_t n) {    \
            return common_wide_with(a, b, n);                                                            \
        }                                                                                                \
        TARGET static uint32_t union_narrow_##SUFFIX(const uint32_t *a, int64_t n) {                     \
            return union_narrow_with(a, n);                                                              \
        }                                                                                                \
        TARGET static uint64_t union_wide_##SUFFIX(const uint64_t *a, int64_t n) {                       \
            return union_wide_with(a, n);                                                                \
        }                                                                                                \
        TARGET static int consecutive_##SUFFIX(const uint64_t *a, int64_t n) {                           \
            return consecutive_with(a, n);                                                               \
        }                                                                                                \
        TARGET static void narrow_##SUFFIX(const uint64_t *a, uint32_t *to, int64_t n) {                 \
            narrow_with(a, to, n);                                                                       \
        }                                                                                                \
        TARGET static void widen_##SUFFIX(const uint32_t *a, int64_t *to, int64_t n) {                   \
            widen_with(a, to, n);                                                                        \
        }                                                                                                \
        TARGET static void widen_back_##SUFFIX(const uint32_t *a, int64_t *to, int64_t n) {              \
            widen_back_with(a, to, n);                                                                   \
        }                                                                                                \
        TARGET static void step_##SUFFIX(uint64_t first, uint64_t step, uint64_t *to, int64_t n) {       \
            step_with(first, step, to, n);                                                               \
        }                                                                                                \
        static const Loops SUFFIX##_loops = {                                                            \
            common_narrow_##SUFFIX, common_wide_##SUFFIX, union_narrow_##SUFFIX, union_wide_##SUFFIX,    \
            consecutive_##SUFFIX, narrow_##SUFFIX, widen_##SUFFIX, widen_back_##SUFFIX, step_##SUFFIX    \
        };

    LOOPS(anywhere, )
    #if defined(__x86_64__)
    LOOPS(avx2, __attribute__((target("avx2"))))
    LOOPS(avx512, __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"))))
    #endif

    static Loops loops;

    /* 0: for any processor, 1: for AVX2, 2: for AVX-512. The best up to `most` that this one has, which is returned. */
    static int choose_loops(int most) {
        int best = 0;
        loops = anywhere_loops;
    #if defined(__x86_64__)
        __builtin_cpu_init();
        if (most >= 1 && __builtin_cpu_supports("avx2")) {
            loops = avx2_loops;
            best = 1;
        }
        if (most >= 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
                && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
            loops = avx512_loops;
            best = 2;
        }
    #else
        (void) most;
    #endif
        return best;
    }
    """
    ctypedef struct Loops:
        int64_t (*common_narrow)(const uint32_t *, const uint32_t *, int64_t) noexcept nogil
        int64_t (*common_wide)(const uint64_t *, const uint32_t *, int64_t) noexcept nogil
        uint32_t (*union_narrow)(const uint32_t *, int64_t) noexcept nogil
        uint64_t (*union_wide)(const uint64_t *, int64_t) noexcept nogil
        int (*consecutive)(const uint64_t *, int64_t) noexcept nogil
        void (*narrow)(const uint64_t *, uint32_t *, int64_t) noexcept nogil
        void (*widen)(const uint32_t *, int64_t *, int64_t) noexcept nogil
        void (*widen_back)(const uint32_t *, int64_t *, int64_t) noexcept nogil
        void (*step)(uint64_t, uint64_t, uint64_t *, int64_t) noexcept nogil
    Loops loops
    int choose_loops(int) noexcept

cdef int chosen = choose_loops(2)


def use_loops(int most):
    """For tests: from now on the loops of a processor without AVX (0), with AVX2 (1), with AVX-512 (2, as at import).

    Returns which of them they are: the best up to ``most`` that this processor has.
    """
    global chosen
    chosen = choose_loops(most)
    return chosen


def loops_name():
    """Which of the loops are in use."""
    return ("any", "avx2", "avx512")[chosen]


cdef int64_t common_prefix(Key key, const uint32_t *stored, int64_t count) noexcept nogil:
    """How many of the first ``count`` tokens, which both have, are equal from the front."""
    if is_wide(key):
        return loops.common_wide(<const uint64_t *> key.data, stored, count)
    return loops.common_narrow(<const uint32_t *> key.data, stored, count)


cdef bint are_tokens(Key key) noexcept nogil:
    """Whether all numbers lie in 0 … 2³² - 1."""
    return not is_wide(key) or loops.union_wide(<const uint64_t *> key.data, key_count(key)) >> 32 == 0


cdef bint are_consecutive(const int64_t *numbers, int64_t count) noexcept nogil:
    return loops.consecutive(<const uint64_t *> numbers, count)


cdef bint has_negative(const int32_t *numbers, int64_t count) noexcept nogil:
    return loops.union_narrow(<const uint32_t *> numbers, count) >> 31 != 0


cdef void copy_tokens(Key key, uint32_t *target, int64_t count) noexcept nogil:
    """The first ``count`` tokens, cut to 32 bits."""
    if is_wide(key):
        loops.narrow(<const uint64_t *> key.data, target, count)
    else:
        memcpy(target, key.data, count * sizeof(uint32_t))


cdef void widen(const uint32_t *numbers, int64_t *target, int64_t count) noexcept nogil:
    loops.widen(numbers, target, count)


cdef void widen_back(const uint32_t *numbers, int64_t *target, int64_t count) noexcept nogil:
    """The same, the last of them first."""
    loops.widen_back(numbers, target, count)


cdef void write_steps(int64_t first, int64_t step, int64_t *target, int64_t count) noexcept nogil:
    """Numbers from ``first`` on, each ``step`` more than the one before; after the largest int64 comes the smallest."""
    loops.step(<uint64_t> first, <uint64_t> step, <uint64_t *> target, count)
