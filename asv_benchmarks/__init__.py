"""asv's configuration, the build of each commit's wheels, and the benchmarks."""
