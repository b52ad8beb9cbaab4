"""What was not warmed is refused, with what is served."""

from __future__ import annotations

import httpx

from server.running import NO_TLS, RunningServer, encoded, picture, stub_server


def edit_with_pictures(server: RunningServer, count: int) -> httpx.Response:
    files = [("image[]", (f"{number}.png", encoded(picture()), "image/png")) for number in range(count)]
    return httpx.post(
        server.api + "/v1/images/edits", data={"prompt": "join them"}, files=files, timeout=30, verify=NO_TLS
    )


def test_two_pictures_are_served_when_they_are_warmed() -> None:
    with stub_server("--max-references", "2", edit_s=0.05) as server:
        assert edit_with_pictures(server, 2).status_code == 200
        assert edit_with_pictures(server, 3).status_code == 400
        assert server.metric("imageedit_warm_shape_seconds", size="128x128", pictures="2", cfg="off") > 0


def test_a_shape_that_the_budget_left_out_is_refused_with_what_is_served() -> None:
    with stub_server("--max-references", "2", "--warmup-budget", "0", edit_s=0.05) as server:
        assert edit_with_pictures(server, 1).status_code == 200
        answer = edit_with_pictures(server, 2)

    assert answer.status_code == 400
    assert "128x128 with 2 pictures is not served here; served are: 128x128" in answer.json()["error"]["message"]
