"""Golden edits: the small trained checkpoint obeys its prompts on every way through the API.

Means of regions are compared with a tolerance, because other processors round otherwise; on one machine the same seed
gives the same bytes on every path, and that is compared too.
"""

from __future__ import annotations

import functools
import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import openai
import pytest
from PIL import Image

from server.pictures import BLUE, GREEN, RED, WHITE, YELLOW, Colour, Scene, centre_colour, corner_colour, far_apart
from server.running import NO_TLS, RunningServer, decoded, encoded, png_base64, running_server

# The first test waits for a real pipeline to start.
pytestmark = pytest.mark.timeout(300)

CLOSE = 24  # of 255, in every channel
SEED = 5
SIDE_PX = 300


def grey(colour: Colour) -> Colour:
    """What black and white makes of a colour."""
    value = round(0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2])
    return value, value, value


@dataclass(frozen=True, kw_only=True)
class Golden:
    """An edit: what goes in, and what its corners and its middle must look like."""

    scene: Scene
    prompt: str
    corner: Colour
    centre: Colour

    def check(self, picture: Image.Image) -> None:
        """Compare the means."""
        assert far_apart(corner_colour(picture), self.corner) <= CLOSE
        assert far_apart(centre_colour(picture), self.centre) <= CLOSE


MUG = Scene(kind="mug", colour=YELLOW, background=GREEN)
BOX = Scene(kind="box", colour=RED, background=WHITE)
TO_BLUE = Golden(scene=MUG, prompt="make the background blue", corner=BLUE, centre=YELLOW)
TO_GREEN = Golden(scene=BOX, prompt="make the object green", corner=WHITE, centre=GREEN)
TO_GREY = Golden(scene=MUG, prompt="make it black and white", corner=grey(GREEN), centre=grey(YELLOW))
TABLE = [
    TO_BLUE,
    TO_GREEN,
    TO_GREY,
    Golden(scene=MUG, prompt="change the background to red", corner=RED, centre=YELLOW),
    Golden(scene=MUG, prompt="replace the background with white", corner=WHITE, centre=YELLOW),
    Golden(scene=BOX, prompt="make the background blue", corner=BLUE, centre=RED),
    Golden(scene=BOX, prompt="paint the object yellow", corner=WHITE, centre=YELLOW),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    files, jobs = (str(tmp_path_factory.mktemp(name)) for name in ("files", "jobs"))
    with running_server("--files-dir", files, "--jobs-dir", jobs, ready_timeout_s=200) as running:
        yield running


def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0)


def sdk(server: RunningServer, golden: Golden, **fields: Any) -> Any:
    with client(server) as api:
        return api.images.edit(
            **{"image": encoded(golden.scene.draw()), "prompt": golden.prompt, "extra_body": {"seed": SEED}} | fields
        )


def json_call(server: RunningServer, golden: Golden) -> Image.Image:
    return decoded(server.edit(image=png_base64(golden.scene.draw()), prompt=golden.prompt, seed=SEED).json()["output"])


def form_call(server: RunningServer, golden: Golden) -> Image.Image:
    return decoded(sdk(server, golden).data[0].b64_json)


def second_of_two(server: RunningServer, golden: Golden) -> Image.Image:
    return decoded(sdk(server, golden, n=2, extra_body={"seed": SEED - 1}).data[1].b64_json)


def stream(server: RunningServer, golden: Golden) -> Image.Image:
    with client(server) as api:
        (event,) = api.images.edit(
            image=encoded(golden.scene.draw()), prompt=golden.prompt, stream=True, extra_body={"seed": SEED}
        )
    return decoded(event.b64_json)


def address(server: RunningServer, golden: Golden) -> Image.Image:
    found = httpx.get(sdk(server, golden, response_format="url").data[0].url, timeout=20, verify=NO_TLS)
    return Image.open(io.BytesIO(found.content))


def job(server: RunningServer, golden: Golden) -> Image.Image:
    sent = {"image": png_base64(golden.scene.draw()), "prompt": golden.prompt, "seed": SEED}
    address = server.api + "/v1/jobs"
    address += "/" + httpx.post(address, json=sent, timeout=20, verify=NO_TLS).json()["id"]
    deadline_s = time.monotonic() + 200
    while httpx.get(address, timeout=20, verify=NO_TLS).json()["status"] in ("queued", "in_progress"):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    return decoded(httpx.get(address + "/result", timeout=20, verify=NO_TLS).json()["output"])


@pytest.fixture(scope="module")
def plain(server: RunningServer) -> Callable[[Golden], Image.Image]:
    """The edit by `/v1/edit`, once for each."""
    return functools.cache(functools.partial(json_call, server))


PATHS: list[Callable[[RunningServer, Golden], Image.Image]] = [form_call, second_of_two, stream, address, job]


@pytest.mark.parametrize("golden", TABLE, ids=lambda golden: f"{golden.scene.kind}: {golden.prompt}")
def test_the_model_obeys_the_prompt(plain: Callable[[Golden], Image.Image], golden: Golden) -> None:
    golden.check(plain(golden))


@pytest.mark.parametrize("golden", [TO_BLUE, TO_GREEN], ids=lambda golden: golden.prompt)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_every_path_gives_the_same_edit(
    server: RunningServer,
    path: Callable[[RunningServer, Golden], Image.Image],
    golden: Golden,
    plain: Callable[[Golden], Image.Image],
) -> None:
    picture = path(server, golden)

    golden.check(picture)
    assert picture.tobytes() == plain(golden).tobytes()


async def test_the_async_client_gives_the_same_edit(server: RunningServer) -> None:
    async with openai.AsyncOpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api:
        answer: Any = await api.images.edit(
            image=encoded(TO_BLUE.scene.draw()), prompt=TO_BLUE.prompt, extra_body={"seed": SEED}
        )

    TO_BLUE.check(decoded(answer.data[0].b64_json))


@pytest.mark.parametrize("kind", ["jpeg", "webp"])
def test_a_file_with_loss_shows_the_same_edit(server: RunningServer, kind: str) -> None:
    TO_GREEN.check(decoded(sdk(server, TO_GREEN, output_format=kind, output_compression=80).data[0].b64_json))


def test_a_large_picture_is_edited_at_its_own_size(server: RunningServer) -> None:
    large = TO_BLUE.scene.draw().resize((SIDE_PX, SIDE_PX))
    picture = decoded(sdk(server, TO_BLUE, image=encoded(large), size="original").data[0].b64_json)

    assert picture.size == (SIDE_PX, SIDE_PX)
    TO_BLUE.check(picture)


def test_a_mask_takes_the_edit_where_it_says_and_keeps_the_rest(server: RunningServer) -> None:
    large = TO_BLUE.scene.draw().resize((SIDE_PX, SIDE_PX))
    mask = Image.new("RGBA", large.size, (0, 0, 0, 0))
    kept = (SIDE_PX // 4, SIDE_PX // 4, SIDE_PX * 3 // 4, SIDE_PX * 3 // 4)
    mask.paste((0, 0, 0, 255), kept)
    answer = sdk(server, TO_BLUE, image=encoded(large), mask=encoded(mask), size="original")
    picture = decoded(answer.data[0].b64_json)

    TO_BLUE.check(picture)
    assert picture.crop(kept).tobytes() == large.crop(kept).tobytes()
