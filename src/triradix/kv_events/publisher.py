"""Sends batches of events to whoever listens, and again to who has missed some."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType

import zmq

from triradix.events import KVCacheEvent
from triradix.kv_events.wire import encode_batch

_END = (-1).to_bytes(8, "big", signed=True)
# How long a request to send again may wait while nothing new is published.
_PATIENCE = 0.02


class EventPublisher:
    """A PUB socket at ``endpoint``; each batch is three frames: topic, number (8 bytes, big-endian), msgpack.

    ``replay_endpoint``: a ROUTER socket, which answers the number of a batch with all batches from there on that are
    among the last ``buffer_steps``, each as it was sent, and then one with the number −1. ``hwm``: how many batches may
    wait for a slow subscriber before it misses some. ``dp_rank``: told to subscribers. ``bind=False`` connects to the
    endpoints instead. An endpoint that cannot be had raises `zmq.ZMQError`.

    Encoding and sending are done by a thread of its own.
    """

    def __init__(
        self,
        endpoint: str = "tcp://*:5557",
        *,
        topic: str = "",
        replay_endpoint: str | None = None,
        buffer_steps: int = 10_000,
        hwm: int = 100_000,
        dp_rank: int | None = 0,
        bind: bool = True,
    ) -> None:
        self._topic, self._dp_rank = topic.encode(), dp_rank
        self._sent: deque[tuple[int, bytes]] = deque(maxlen=buffer_steps)
        self._waiting: queue.SimpleQueue[tuple[float, Sequence[KVCacheEvent]] | None] = queue.SimpleQueue()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._socket = self._context.socket(zmq.PUB)
        self._replay: zmq.Socket[bytes] | None = None
        try:
            self._socket.set_hwm(hwm)
            self.endpoint = self._open(self._socket, endpoint, bind)
            self.replay_endpoint = None
            if replay_endpoint is not None:
                self._replay = self._context.socket(zmq.ROUTER)
                self.replay_endpoint = self._open(self._replay, replay_endpoint, True)
        except zmq.ZMQError:
            self._close_sockets()
            raise
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="triradix events", daemon=True)
        self._thread.start()

    def publish(self, events: Sequence[KVCacheEvent]) -> None:
        """Send these, in order, as one batch; nothing is sent for none. Never waits. ValueError if it is closed."""
        if self._closed:
            raise ValueError("the publisher is closed")
        if events:
            self._waiting.put((time.time(), events))

    def describe(self, block_size: int) -> dict[str, str | int]:
        """What an engine's ``/server_info`` says under ``kv_events``, so that routers and viewers find this publisher.

        ``block_size``: the cache's page size. ValueError if the endpoint is not TCP.
        """
        host, colon, port = self.endpoint.removeprefix("tcp://").rpartition(":")
        if not self.endpoint.startswith("tcp://") or not colon:
            raise ValueError(
                f"{self.endpoint} cannot be found from another machine: only tcp:// endpoints are described"
            )
        found: dict[str, str | int] = {
            "publisher": "zmq",
            "endpoint_host": host,
            "endpoint_port_base": int(port),
            "topic": self._topic.decode(),
            "block_size": block_size,
            "dp_size": 1,
        }
        if self.replay_endpoint is not None and self.replay_endpoint.startswith("tcp://"):
            found["replay_endpoint_port_base"] = int(self.replay_endpoint.rpartition(":")[2])
        return found

    def close(self) -> None:
        """Send what waits, then close the sockets. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._thread.join()

    def __enter__(self) -> EventPublisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @staticmethod
    def _open(socket: zmq.Socket[bytes], endpoint: str, bind: bool) -> str:
        """Returns where it is: a port may have been chosen."""
        socket.bind(endpoint) if bind else socket.connect(endpoint)
        where = socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(where, bytes)
        return where.rstrip(b"\0").decode()

    def _run(self) -> None:
        number = 0
        try:
            while True:
                if self._replay is not None and self._replay.poll(0):
                    self._send_again(self._replay)
                try:
                    batch = self._waiting.get(timeout=None if self._replay is None else _PATIENCE)
                except queue.Empty:
                    continue
                if batch is None:
                    return
                payload = encode_batch(batch[1], batch[0], self._dp_rank)
                self._socket.send_multipart((self._topic, number.to_bytes(8, "big"), payload))
                self._sent.append((number, payload))
                number += 1
        finally:
            self._close_sockets()

    def _send_again(self, replay: zmq.Socket[bytes]) -> None:
        frames = replay.recv_multipart()
        if len(frames) != 3:
            return  # not a REQ socket's: there is nobody to tell
        client, _, first = frames
        for number, payload in self._sent:
            if number >= int.from_bytes(first, "big"):
                replay.send_multipart((client, b"", self._topic, number.to_bytes(8, "big"), payload))
        replay.send_multipart((client, b"", b"", _END, b""))

    def _close_sockets(self) -> None:
        # What was sent last is given a second to leave.
        self._socket.close(linger=1000)
        if self._replay is not None:
            self._replay.close(linger=1000)
