"""Is what is installed here in order? ``triradix doctor`` answers: what an operator runs in a pod after a deployment.

`examination` gives each implementation a process of its own (`process`, `worker`), so that one which crashes or hangs
is a finding and not the end; there it is imported, put through `self_test`, forked (`forks`) and timed (`latency`).
`command` shows what was found and sets the exit code.
"""
