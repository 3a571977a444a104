"""What a prefix cache costs, over the commits: one file for each kind of work.

Lower is better, always. A figure is the time of one call (of one key in a batch), unless its name or unit says
otherwise. Names end in what one figure is: ``match.HotMatch.time_one_match``. The README beside this folder says how to
run them, how to read them and how to add one.
"""
