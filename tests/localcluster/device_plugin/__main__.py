"""The device plugin's process: `python -m localcluster.device_plugin <cards file> <plugin folder>`.

Follows the cards file, and registers again whenever the kubelet made its socket anew
(a kubelet that starts also removes our socket).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from localcluster import cards
from localcluster.addresses import RESOURCE_NAME
from localcluster.device_plugin import messages

POLL_S = 0.2
ENDPOINT = "imageedit-cards.sock"
PREFIX = "Ascend910-"
CALL_TIMEOUT_S = 5.0
SocketIdentity = tuple[int, int]


class Plugin:
    """The service that the kubelet calls. One event ends its streams."""

    def __init__(self, cards_file: Path) -> None:
        self.cards_file = cards_file
        self.stopped = threading.Event()

    def devices(self) -> dict[str, bool]:
        """Every card and whether it is healthy."""
        now = cards.read(self.cards_file)
        return {f"{PREFIX}{number}": number not in now.unhealthy for number in range(now.count)}

    def options(self, _request: bytes, _context: grpc.ServicerContext) -> bytes:
        """DevicePluginOptions: none."""
        return b""

    def list_and_watch(self, _request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """The list now, and again after every change."""
        told: dict[str, bool] | None = None
        while context.is_active() and not self.stopped.is_set():
            now = self.devices()
            if now != told:
                print(f"devices {now}", flush=True)
                yield messages.device_list(now)
                told = now
            self.stopped.wait(POLL_S)

    def allocate(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        """What an Ascend plugin gives under its runtime: the numbers of the cards, and no device files."""
        wanted = messages.allocate_request(request)
        print(f"allocate {wanted}", flush=True)
        numbers = [",".join(device.removeprefix(PREFIX) for device in container) for container in wanted]
        return messages.allocate_response([{"ASCEND_VISIBLE_DEVICES": number} for number in numbers])


def serve(plugin: Plugin, socket: Path) -> grpc.Server:
    """A gRPC server on the socket; messages pass as bytes."""
    methods = {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(plugin.options),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(plugin.list_and_watch),
        "Allocate": grpc.unary_unary_rpc_method_handler(plugin.allocate),
    }
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", methods),))
    socket.unlink(missing_ok=True)
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def register(kubelet_socket: Path) -> None:
    """Tell the kubelet of our socket; raises grpc.RpcError when it does not answer."""
    with grpc.insecure_channel(f"unix://{kubelet_socket}") as channel:
        call = channel.unary_unary("/v1beta1.Registration/Register")
        request = messages.register_request(endpoint=ENDPOINT, resource_name=RESOURCE_NAME)
        call(request, timeout=CALL_TIMEOUT_S, wait_for_ready=True)


def identity(socket: Path) -> SocketIdentity | None:
    """Tells one making of a socket from the next; None while there is none."""
    try:
        status = socket.stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def main(cards_file: Path, folder: Path) -> None:
    """Serve and register, again for every new kubelet, until killed."""
    kubelet, own = folder / "kubelet.sock", folder / ENDPOINT
    registered: SocketIdentity | None = None
    plugin, server = Plugin(cards_file), None
    while True:
        present = identity(kubelet)
        if present is not None and (present != registered or not own.exists()):
            plugin.stopped.set()
            if server is not None:
                server.stop(grace=None).wait()
            plugin = Plugin(cards_file)
            server = serve(plugin, own)
            try:
                register(kubelet)
                registered = present
                print(f"registered {RESOURCE_NAME}", flush=True)
            except grpc.RpcError as error:
                print(f"the kubelet did not take the registration: {error}", flush=True)
        time.sleep(POLL_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
