"""Where the browser and its servers run."""

from __future__ import annotations

import os
import socket

import pytest

from browser import network
from browser.conftest import HERE


def test_no_network_device_can_come_or_go_while_a_page_loads(request: pytest.FixtureRequest) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may make a network; without one, a device that comes or goes ends what Chromium loads")
    if not all(item.path.is_relative_to(HERE) for item in request.session.items):
        pytest.skip("other tests of this session need the machine's network")

    assert [name for _, name in socket.if_nameindex()] == [network.LOOPBACK]
