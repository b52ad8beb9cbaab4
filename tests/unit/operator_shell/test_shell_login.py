"""A login that was refused is read again, and used when it has changed."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from imageedit_operator.errors import PreflightFailed
from imageedit_operator.kube.login import Login, load_configuration


def kubeconfig(path: Path, token: str) -> str:
    """A kubeconfig with this token."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "apiVersion: v1", "users: ["])
async def test_a_kubeconfig_that_is_half_written_is_no_way_to_log_in(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(PreflightFailed, match="no way to log in"):
        await load_configuration(str(tmp_path / "config"))


async def test_the_same_login_is_not_tried_again(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        login = Login(kubeconfig(tmp_path / "config", "old"), stack)
        assert await login.renew(await login.begin()) is None


async def test_a_login_that_changed_is_tried_and_by_who_was_refused_at_the_same_time_too(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        login = Login(kubeconfig(tmp_path / "config", "old"), stack)
        old = await login.begin()
        kubeconfig(tmp_path / "config", "new")
        new = await login.renew(old)
        assert new is not None
        assert (await new.configuration.auth_settings())["BearerToken"]["value"] == "Bearer new"
        assert await login.renew(old) is new
        assert await login.renew(new) is None


async def test_a_login_that_cannot_be_read_just_now_is_none(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        login = Login(kubeconfig(tmp_path / "config", "old"), stack)
        old = await login.begin()
        (tmp_path / "config").write_text("{")
        assert await login.renew(old) is None
