"""The few messages of the kubelet's device plugin API v1beta1, in protobuf's wire format.

Every field that the plugin reads or writes is a string or a message, that is, one
length-delimited kind of field: thirty lines here instead of generated code that ties the
project to one protobuf runtime. The field numbers are those of the kubelet's api.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

LENGTH_DELIMITED = 2


def field(number: int, value: str | bytes) -> bytes:
    """One string or message field."""
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | LENGTH_DELIMITED) + varint(len(data)) + data


def varint(number: int) -> bytes:
    """A number of 0 or more, seven bits a byte, lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that holds only strings and messages; raises ValueError for anything else."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        if tag & 7 != LENGTH_DELIMITED:
            raise ValueError(f"field {tag >> 3} has wire type {tag & 7}, expected {LENGTH_DELIMITED}")
        length, at = _read_varint(message, at)
        yield tag >> 3, message[at : at + length]
        at += length


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return number, at


def register_request(*, endpoint: str, resource_name: str) -> bytes:
    """RegisterRequest{version=1, endpoint=2, resource_name=3}."""
    return field(1, "v1beta1") + field(2, endpoint) + field(3, resource_name)


def device_list(healthy: Mapping[str, bool]) -> bytes:
    """ListAndWatchResponse{devices=1: Device{ID=1, health=2}}."""
    states = {True: "Healthy", False: "Unhealthy"}
    return b"".join(field(1, field(1, device) + field(2, states[good])) for device, good in healthy.items())


def allocate_request(message: bytes) -> list[list[str]]:
    """The device ids asked for, one list a container: AllocateRequest{container_requests=1: {devices_ids=1}}."""
    containers = [value for number, value in fields(message) if number == 1]
    return [[value.decode() for number, value in fields(container) if number == 1] for container in containers]


def allocate_response(environments: Sequence[Mapping[str, str]]) -> bytes:
    """AllocateResponse{container_responses=1: {envs=1: {key=1, value=2}}}, one environment a container."""
    containers = (
        b"".join(field(1, field(1, key) + field(2, value)) for key, value in environment.items())
        for environment in environments
    )
    return b"".join(field(1, container) for container in containers)
