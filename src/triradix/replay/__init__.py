"""The main job: a request trace through each implementation as an engine would drive it, and what that cost.

Data flows one way: `traces` or `workloads` make requests; `engine` drives a cache with them, over the slots of `pool`,
and `recorder` keeps what each call took; `worker` does this in a process of its own for each implementation, `runner`
starts those one after the other and demands that they agree; `report` turns the measurements into one plain mapping,
which `table`, `page` and the JSON file show.
"""
