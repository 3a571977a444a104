"""SHA-256 (FIPS 180-4) in plain C: no Python object is made while the tree changes."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from *:
    """
    #define ROTATE_RIGHT32(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
    """
    uint32_t ROTATE_RIGHT32(uint32_t, int) noexcept nogil

cdef bytes NAMESPACE_DOMAIN = b"sglang-cache-namespace-v1"


cdef uint32_t[64] SHA_CONSTANTS
SHA_CONSTANTS[:] = [
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
]

cdef struct Sha:
    uint32_t[8] state
    uint8_t[64] block
    int filled           # bytes of the block that are there
    uint64_t total       # bytes fed


cdef void sha_init(Sha *sha) noexcept nogil:
    sha.state[0] = 0x6A09E667
    sha.state[1] = 0xBB67AE85
    sha.state[2] = 0x3C6EF372
    sha.state[3] = 0xA54FF53A
    sha.state[4] = 0x510E527F
    sha.state[5] = 0x9B05688C
    sha.state[6] = 0x1F83D9AB
    sha.state[7] = 0x5BE0CD19
    sha.filled = 0
    sha.total = 0


cdef void sha_block(Sha *sha, const uint8_t *block) noexcept nogil:
    cdef uint32_t[64] w
    cdef uint32_t a, b, c, d, e, f, g, h, s0, s1
    cdef int i
    for i in range(16):
        w[i] = (<uint32_t> block[4 * i] << 24 | <uint32_t> block[4 * i + 1] << 16
                | <uint32_t> block[4 * i + 2] << 8 | block[4 * i + 3])
    for i in range(16, 64):
        s0 = ROTATE_RIGHT32(w[i - 15], 7) ^ ROTATE_RIGHT32(w[i - 15], 18) ^ (w[i - 15] >> 3)
        s1 = ROTATE_RIGHT32(w[i - 2], 17) ^ ROTATE_RIGHT32(w[i - 2], 19) ^ (w[i - 2] >> 10)
        w[i] = w[i - 16] + s0 + w[i - 7] + s1
    a, b, c, d = sha.state[0], sha.state[1], sha.state[2], sha.state[3]
    e, f, g, h = sha.state[4], sha.state[5], sha.state[6], sha.state[7]
    for i in range(64):
        s1 = ROTATE_RIGHT32(e, 6) ^ ROTATE_RIGHT32(e, 11) ^ ROTATE_RIGHT32(e, 25)
        s1 = h + s1 + ((e & f) ^ (~e & g)) + SHA_CONSTANTS[i] + w[i]
        s0 = ROTATE_RIGHT32(a, 2) ^ ROTATE_RIGHT32(a, 13) ^ ROTATE_RIGHT32(a, 22)
        s0 = s0 + ((a & b) ^ (a & c) ^ (b & c))
        h, g, f, e = g, f, e, d + s1
        d, c, b, a = c, b, a, s1 + s0
    sha.state[0] += a
    sha.state[1] += b
    sha.state[2] += c
    sha.state[3] += d
    sha.state[4] += e
    sha.state[5] += f
    sha.state[6] += g
    sha.state[7] += h


cdef void sha_feed(Sha *sha, const uint8_t *data, int64_t size) noexcept nogil:
    cdef int64_t part
    sha.total += size
    while size > 0:
        if sha.filled == 0 and size >= 64:
            sha_block(sha, data)
            part = 64
        else:
            part = min(size, <int64_t> (64 - sha.filled))
            memcpy(sha.block + sha.filled, data, part)
            sha.filled += <int> part
            if sha.filled == 64:
                sha_block(sha, sha.block)
                sha.filled = 0
        data += part
        size -= part


cdef void sha_finish(Sha *sha, uint8_t *digest) noexcept nogil:
    cdef uint64_t bits = sha.total * 8
    cdef int i
    sha.block[sha.filled] = 0x80
    sha.filled += 1
    if sha.filled > 56:
        memset(sha.block + sha.filled, 0, 64 - sha.filled)
        sha_block(sha, sha.block)
        sha.filled = 0
    memset(sha.block + sha.filled, 0, 56 - sha.filled)
    for i in range(8):
        sha.block[56 + i] = <uint8_t> (bits >> (56 - 8 * i))
    sha_block(sha, sha.block)
    for i in range(32):
        digest[i] = <uint8_t> (sha.state[i // 4] >> (24 - 8 * (i % 4)))


cdef void feed_token(Sha *sha, uint32_t token) noexcept nogil:
    cdef uint8_t[4] little
    little[0] = <uint8_t> token
    little[1] = <uint8_t> (token >> 8)
    little[2] = <uint8_t> (token >> 16)
    little[3] = <uint8_t> (token >> 24)
    sha_feed(sha, little, 4)


cdef void page_digest(
    const uint8_t *previous, int64_t previous_size, const uint32_t *tokens, int64_t page, int64_t overlap,
    uint8_t *digest,
) noexcept nogil:
    """SHA-256(previous digest, then the units of the page as little-endian words: two for a bigram)."""
    cdef Sha sha
    cdef int64_t i
    sha_init(&sha)
    sha_feed(&sha, previous, previous_size)
    for i in range(page):
        feed_token(&sha, tokens[i])
        if overlap:
            feed_token(&sha, tokens[i + 1])
    sha_finish(&sha, digest)


cdef int64_t event_hash(const uint8_t *digest) noexcept nogil:
    """The first 8 bytes as a big-endian signed integer."""
    cdef uint64_t number = 0
    cdef int i
    for i in range(8):
        number = number << 8 | digest[i]
    return <int64_t> number


cdef int namespace_seed(object pair, uint8_t *seed) except -1:
    """What stands before the first page of a namespace: its size in bytes, 0 for the default one (None)."""
    cdef bytes text
    cdef Sha sha
    if pair is None:
        return 0
    text = NAMESPACE_DOMAIN
    for part in <tuple> pair:
        if part is None:
            text += b"\0"
        else:
            encoded = (<str> part).encode()
            text += b"\1" + len(encoded).to_bytes(8, "little") + encoded
    sha_init(&sha)
    sha_feed(&sha, text, len(text))
    sha_finish(&sha, seed)
    return DIGEST
