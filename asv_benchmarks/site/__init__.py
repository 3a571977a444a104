"""The site: one page that leads in, and asv's pages made to work without the internet, from any folder or server.

``python -m asv_benchmarks.site`` makes it from what has been measured (``make site``). `graphs` has asv publish,
`libraries` fetches what asv's pages load, `offline` rewrites these pages, `lead` writes the page that leads in; `make`
has them do so, and `swap` puts the whole in its place.
"""


class CannotMake(Exception):
    """Why a part of the site cannot be made, in one sentence."""
