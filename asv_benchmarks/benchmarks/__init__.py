"""What a prefix cache costs, over the commits: match, insert and evict of the three implementations.

Lower is better, always. An implementation that a commit does not have fails its benchmarks, so that a gap in the curve
has a reason on record.
"""
