"""Length-prefixed pickles over pipes: blocking on the worker's side, asyncio on the API process's side.

With an area of shared memory the large parts of a message go through it, and the pipe carries the rest.

Both ends are the same package started by the same parent, so unpickling what arrives is safe here.
"""

import asyncio
import pickle
import struct
from typing import Any, BinaryIO

from imageedit_server.worker.shared import Area

_LENGTH = struct.Struct("!Q")


def pack(message: object, area: Area | None = None) -> bytes:
    """Turn a message into one frame."""
    body = pickle.dumps(message, protocol=5) if area is None else area.pickled(message)
    return _LENGTH.pack(len(body)) + body


async def read_message(stream: asyncio.StreamReader, area: Area | None = None) -> Any:
    """Wait for one message.

    Raises:
        EOFError: the other side is gone.
    """
    try:
        (length_bytes,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
        return _unpacked(await stream.readexactly(length_bytes), area)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise EOFError("the worker closed its pipe") from error


def read_message_blocking(stream: BinaryIO, area: Area | None = None) -> Any:
    """Wait for one message, in a thread that may block.

    Raises:
        EOFError: the other side is gone.
    """
    (length_bytes,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return _unpacked(_read_exactly(stream, length_bytes), area)


def _unpacked(body: bytes, area: Area | None) -> Any:
    return pickle.loads(body) if area is None else area.unpickled(body)


def _read_exactly(stream: BinaryIO, size_bytes: int) -> bytes:
    data = stream.read(size_bytes)
    if len(data) < size_bytes:
        raise EOFError("the API process closed its pipe")
    return data
