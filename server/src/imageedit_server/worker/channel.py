"""The messages to and from one worker process, as its supervisor sends and gets them."""

from asyncio.subprocess import Process
from typing import cast

from imageedit_server.worker.framing import pack, read_message
from imageedit_server.worker.protocol import FromWorker, ToWorker
from imageedit_server.worker.shared import Areas


class Channel:
    """Both pipes of the process, and the memory beside them."""

    def __init__(self, process: Process, areas: Areas) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to_worker = process.stdin
        self._from_worker = process.stdout
        self._areas = areas

    def write(self, message: ToWorker) -> None:
        """Send a small message, without waiting for room in the pipe."""
        self._to_worker.write(pack(message, self._areas.outgoing))

    async def send(self, message: ToWorker) -> None:
        """Send a message."""
        self.write(message)
        await self._to_worker.drain()

    async def receive(self) -> FromWorker:
        """Wait for the next message.

        Raises:
            EOFError: the worker is gone.
        """
        return cast(FromWorker, await read_message(self._from_worker, self._areas.incoming))

    def close(self) -> None:
        """Give the memory back."""
        self._areas.close()
