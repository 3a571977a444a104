"""One command that measures the three trees beside SGLang's and NVIDIA Dynamo's, in one run: ``triradix compare``.

Data flows one way: `systems` names what is compared, each by an `adapter` (`trees` for ours, `sglang`, `dynamo`);
`rows` lists what is measured, `works` and its neighbours say how; `worker` does it in a process of its own for each
system, which `driver` commands in interleaved rounds; `statistics` and `report` turn the rounds into one plain mapping,
which `table`, `page` and the JSON file show. `floor` measures what the machine cannot do faster. `peers` makes the
peers' environment.

What runs in the peers' environment (`worker`, the adapters, the works) imports nothing but NumPy and `triradix` itself.
"""
