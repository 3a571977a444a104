"""How times are taken: a sample is many calls in a row, and what asv records is the time of one of them."""

from collections.abc import Callable
from time import perf_counter, process_time


class Timed:
    """asv's settings for a timed benchmark. ``setup`` ends with ``self.one_of(calls)``: so many are one sample.

    ``setup`` runs before every sample, so a sample may change the cache. The time is that of the processor, of all
    threads of the process: what other programs take meanwhile is not in it. Where threads share the work it is wall
    time, since that is what they are for. A figure contains one turn of a Python loop (10 to 20 ns). Python's garbage
    collector is off within a sample, as timeit has it; `collector` measures that.
    """

    version = "1"  # to be raised when the work changes: asv then knows that old figures are of something else
    timer: Callable[[], float]
    number = 1
    rounds = 4  # each in a process of its own; with several commits they take turns
    repeat = (2, 4, 0.3)  # samples of a round: at least, at most, seconds after which no more are begun
    warmup_time = 0.03
    timeout = 300.0

    def one_of(self, calls: int, threads: int = 1) -> None:
        """A clock that runs so many times slower: the time of the sample is then the time of one call."""
        clock = process_time if threads == 1 else perf_counter
        self.timer = lambda: clock() / calls


class Heavy(Timed):
    """The same where making the cache takes seconds: it is made once a process, and fewer processes are started."""

    rounds = 2
    repeat = (3, 6, 0.6)
