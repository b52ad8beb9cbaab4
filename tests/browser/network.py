"""A network of the session's own, with nothing but loopback.

Chromium ends what it loads with ERR_NETWORK_CHANGED whenever a device comes or goes anywhere on the machine, and the
cluster's tests, which run beside these, make and remove one with every pod.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
# struct ifreq: a name, then a union of 24 bytes that begins with the flags.
IFREQ = "16sh22x"
LOOPBACK = "lo"


def enter() -> bool:
    """Take this thread, and the threads and processes that it starts from now on, into a new network.

    False without the right to (root, or CAP_SYS_ADMIN); then nothing has changed.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack(IFREQ, LOOPBACK.encode(), 0))
        name, flags = struct.unpack(IFREQ, request)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack(IFREQ, name, flags | IFF_UP))
    return True
