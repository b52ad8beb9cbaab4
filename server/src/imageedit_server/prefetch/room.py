"""Whether a disk has room for what is to be copied."""

from __future__ import annotations

from imageedit_server.prefetch.failures import CannotCopy, Failure
from imageedit_server.prefetch.progress import amount


# | free space less the reserve         | said     |
# | at least what is to be copied       | nothing  |
# | less                                | DiskFull |
def check_room(*, needed_bytes: int, free_bytes: int, disk_bytes: int, reserve_percent: int, where: object) -> None:
    """Refuse before the first byte. The reserve stays free: where a disk runs full, the kubelet evicts pods.

    Raises:
        CannotCopy: DiskFull, with how much has to go.
    """
    reserve_bytes = disk_bytes * reserve_percent // 100
    short_bytes = needed_bytes + reserve_bytes - free_bytes
    if not needed_bytes or short_bytes <= 0:
        return
    kept = f", of which {amount(reserve_bytes)} have to stay free" if reserve_bytes else ""
    raise CannotCopy(
        Failure.DISK_FULL,
        f"{where} has {amount(free_bytes)} free{kept}, and {amount(needed_bytes)} are to be copied;"
        f" free {amount(short_bytes)} on this disk, or name a folder on another one",
    )
