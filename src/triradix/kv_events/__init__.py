"""KV events over ZeroMQ in SGLang's wire format: for engines that embed a cache, and tell routers what it holds.

    with EventPublisher("tcp://*:5557") as publisher:
        ...
        publisher.publish(cache.take_events())  # after each step

``pip install triradix[zmq]``.
"""

from triradix.kv_events.publisher import EventPublisher
from triradix.kv_events.wire import encode_batch

__all__ = ["EventPublisher", "encode_batch"]
