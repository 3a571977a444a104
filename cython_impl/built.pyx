"""How this tree was built: what `triradix doctor` shows of it."""

from .compare import loops_name

cdef extern from *:
    """
    #define TRIRADIX_TEXT_OF(number) #number
    #define TRIRADIX_TEXT(number) TRIRADIX_TEXT_OF(number)

    #if defined(__clang__)
    #define TRIRADIX_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
    #define TRIRADIX_COMPILER "gcc " __VERSION__
    #else
    #define TRIRADIX_COMPILER "an unknown C compiler"
    #endif

    #if defined(__OPTIMIZE__) && !defined(Py_DEBUG)
    #define TRIRADIX_PROFILE "release"
    #else
    #define TRIRADIX_PROFILE "debug"
    #endif

    #define TRIRADIX_ABI "cp" TRIRADIX_TEXT(PY_MAJOR_VERSION) TRIRADIX_TEXT(PY_MINOR_VERSION)
    """
    const char *TRIRADIX_COMPILER
    const char *TRIRADIX_PROFILE
    const char *TRIRADIX_ABI
    const char *TRIRADIX_VERSION    # setup.py says it


def build_info():
    """``version``; ``profile``, release or debug; ``compiler``; ``cpu``, the loops chosen at the import; ``abi``."""
    return {
        "version": TRIRADIX_VERSION.decode(),
        "profile": TRIRADIX_PROFILE.decode(),
        "compiler": TRIRADIX_COMPILER.decode().strip(),
        "cpu": loops_name(),
        "abi": TRIRADIX_ABI.decode(),
    }
