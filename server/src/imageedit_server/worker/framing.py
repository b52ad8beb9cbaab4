"""Length-prefixed pickles over pipes: blocking on the worker's side, asyncio on the API process's side.

Both ends are the same package started by the same parent, so unpickling what arrives is safe here.
"""

import asyncio
import pickle
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct("!Q")


def pack(message: object) -> bytes:
    """Turn a message into one frame."""
    body = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(body)) + body


async def read_message(stream: asyncio.StreamReader) -> Any:
    """Wait for one message.

    Raises:
        EOFError: the other side is gone.
    """
    try:
        (length_bytes,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
        return pickle.loads(await stream.readexactly(length_bytes))
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise EOFError("the worker closed its pipe") from error


def read_message_blocking(stream: BinaryIO) -> Any:
    """Wait for one message, in a thread that may block.

    Raises:
        EOFError: the other side is gone.
    """
    (length_bytes,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return pickle.loads(_read_exactly(stream, length_bytes))


def _read_exactly(stream: BinaryIO, size_bytes: int) -> bytes:
    data = stream.read(size_bytes)
    if len(data) < size_bytes:
        raise EOFError("the API process closed its pipe")
    return data
