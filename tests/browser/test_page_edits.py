"""Whole edits on the page, with the demo checkpoint."""

from __future__ import annotations

import base64

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import expect

from browser.conftest import Visit
from browser.visitor import Visitor, file
from server.pictures import BLUE, GREEN, RED, Scene, corner_colour, far_apart
from server.running import RunningServer, encoded

BEFORE = Scene().draw()
NEAR = 60


@pytest.fixture
def visitor(visit: Visit, demo: RunningServer) -> Visitor:
    return visit(demo)


def test_a_picture_is_edited_with_the_mouse(visitor: Visitor) -> None:
    page = visitor.page
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a picture").click()
    chooser.value.set_files(file(encoded(BEFORE)))
    visitor.ask("make the background blue")
    visitor.run()

    assert far_apart(corner_colour(visitor.picture()), BLUE) < NEAR
    expect(page.get_by_alt_text("After the edit: make the background blue")).to_be_visible()
    assert far_apart(corner_colour(BEFORE), GREEN) < NEAR


def test_a_picture_is_edited_with_the_keyboard_alone(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Choose a picture")).to_be_focused()
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(file(encoded(BEFORE)))
    expect(page.locator("#stage")).to_have_attribute("data-view", "picture")
    for _ in range(20):
        if page.evaluate("document.activeElement.id") == "prompt":
            break
        page.keyboard.press("Tab")
    page.keyboard.type("make the background blue")
    page.keyboard.press("Control+Enter")

    assert far_apart(corner_colour(visitor.picture()), BLUE) < NEAR


def test_the_slider_moves_by_its_keys(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    visitor.ask("make the background blue", steps=2)
    visitor.run()
    visitor.result()
    slider = visitor.page.get_by_role("slider", name="Before and after")
    slider.focus()
    seen = []
    for key in ("ArrowRight", "Shift+ArrowRight", "ArrowLeft", "PageDown", "Home", "End", "ArrowRight"):
        slider.press(key)
        seen.append(slider.get_attribute("aria-valuenow"))

    assert seen == ["52", "62", "60", "50", "0", "100", "100"]
    assert slider.get_attribute("aria-valuetext") == "100 % before, 0 % after"


def test_the_slider_follows_the_pointer(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    visitor.ask("make the background blue", steps=2)
    visitor.run()
    visitor.result()
    box = visitor.page.locator("#frame").bounding_box()
    assert box is not None
    visitor.page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.5)

    assert visitor.page.get_by_role("slider", name="Before and after").get_attribute("aria-valuenow") == "25"


def changed(before: Image.Image, after: Image.Image, box: tuple[int, int, int, int]) -> bool:
    return ImageChops.difference(before.crop(box), after.crop(box)).getbbox() is not None


def test_a_rectangle_on_the_mask_limits_the_change_to_the_bit(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    visitor.page.get_by_role("button", name="Mask", exact=True).click()
    visitor.page.get_by_role("radio", name="Rectangle").check()
    visitor.drag_on_mask((-0.02, -0.02), (0.5, 1.02))
    visitor.says("50 %", at="#coverage")
    visitor.ask("make the background blue", size="original")
    visitor.run()
    after = visitor.picture()

    assert changed(BEFORE, after, (0, 0, 60, 128))
    assert not changed(BEFORE, after, (66, 0, 128, 128))


def test_the_brush_marks_where_it_was_and_undo_takes_it_back(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    visitor.page.get_by_role("button", name="Mask", exact=True).click()
    visitor.drag_on_mask((0.1, 0.1), (0.9, 0.1))
    visitor.ask("make the background blue", size="original")
    visitor.run()
    after = visitor.picture()

    assert changed(BEFORE, after, (20, 8, 108, 16))
    assert not changed(BEFORE, after, (0, 40, 128, 128))
    visitor.page.get_by_role("button", name="Picture", exact=True).click()
    visitor.page.get_by_role("button", name="Mask", exact=True).click()
    visitor.page.get_by_role("button", name="Undo").click()
    visitor.says("Nothing is marked", at="#coverage")


def test_a_mask_is_drawn_with_the_keyboard_alone(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    visitor.page.get_by_role("button", name="Mask", exact=True).press("Enter")
    canvas = visitor.page.locator("#mask")
    canvas.focus()
    for key in ("r", "Shift+ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowUp", "ArrowUp", "r"):
        canvas.press(key)
    # A fifth of the width, and 11 % of the height.
    visitor.says("2 %", at="#coverage")
    visitor.says("across", at="#announce")
    for key in ("Shift+ArrowDown", "Space", "Shift+ArrowRight", "Space", "Shift+ArrowRight"):
        canvas.press(key)
    visitor.ask("make the background blue", size="original")
    visitor.run()

    assert not changed(BEFORE, visitor.picture(), (0, 90, 128, 128))


def test_a_saved_mask_can_be_loaded_and_inverted(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    page = visitor.page
    page.get_by_role("button", name="Mask", exact=True).click()
    page.get_by_role("radio", name="Rectangle").check()
    visitor.drag_on_mask((-0.02, -0.02), (0.25, 1.02))
    with page.expect_download() as download:
        page.get_by_role("button", name="Save mask").click()
    saved = download.value.path().read_bytes()
    page.get_by_role("button", name="Clear").click()
    visitor.says("Nothing is marked", at="#coverage")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Load mask").click()
    chooser.value.set_files(file(saved, "mask.png"))
    visitor.says("25 %", at="#coverage")
    page.get_by_role("button", name="Invert").click()

    visitor.says("75 %", at="#coverage")


def test_the_kept_seed_makes_the_same_picture_again(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    visitor.ask("make the background blue", steps=2)
    visitor.run()
    first = visitor.result()
    visitor.page.get_by_role("button", name="Keep seed").click()
    visitor.run()
    expect(visitor.page.locator("#shots button")).to_have_count(2)

    assert visitor.result() == first


def test_a_result_is_edited_further(visitor: Visitor) -> None:
    visitor.choose(BEFORE)
    visitor.ask("make the background blue")
    visitor.run()
    visitor.result()
    visitor.page.get_by_role("button", name="Edit further").click()
    visitor.says("edited-1.png", at="#facts")
    visitor.ask("make the background red")
    visitor.run()
    expect(visitor.page.locator("#shots button")).to_have_count(2)

    assert far_apart(corner_colour(visitor.picture()), RED) < NEAR


def test_a_turned_photograph_is_upright_and_its_mask_fits(visitor: Visitor) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = BEFORE.resize((128, 64))
    visitor.choose(encoded(lying, "JPEG", exif=exif), "photo.jpg")
    visitor.says("64 \u00d7 128", at="#facts")
    visitor.page.get_by_role("button", name="Mask", exact=True).click()
    visitor.page.get_by_role("radio", name="Rectangle").check()
    visitor.drag_on_mask((-0.02, -0.02), (1.02, 0.25))
    visitor.ask("make the background blue", steps=2, size="original")
    visitor.run()

    assert visitor.picture().size == (64, 128)


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_a_picture_comes_in_by(visitor: Visitor, way: str) -> None:
    visitor.page.evaluate(
        """([way, base64]) => {
          const transfer = new DataTransfer();
          const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
          transfer.items.add(new File([bytes], "came.png", { type: "image/png" }));
          const event = way === "drop"
            ? new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true })
            : new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true });
          document.getElementById("stage").dispatchEvent(event);
        }""",
        [way, base64.b64encode(encoded(BEFORE)).decode()],
    )

    visitor.says("came.png · 128 \u00d7 128", at="#facts")


def test_a_file_that_is_no_picture_is_refused_in_words(visitor: Visitor) -> None:
    visitor.page.set_input_files("#file", file(b"plainly text", "notes.txt"))

    visitor.says("no picture that can be read here", at="#image-problem")


def test_a_kind_that_the_server_does_not_take_goes_as_png(visitor: Visitor) -> None:
    visitor.choose(encoded(BEFORE, "GIF"), "before.png")
    visitor.ask("make the background blue", steps=2)
    visitor.run()

    assert visitor.picture().size == (128, 128)


def test_two_pictures_and_several_results(visitor: Visitor) -> None:
    page = visitor.page
    visitor.choose(BEFORE)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add a picture").click()
    chooser.value.set_files(file(encoded(Scene(kind="box").draw()), "box.png"))
    expect(page.get_by_role("button", name="Remove box.png")).to_be_visible()
    expect(page.get_by_role("button", name="Add a picture")).to_be_hidden()
    page.get_by_role("combobox", name="Results").select_option("2")
    visitor.ask("make the background blue", steps=2)
    visitor.run()

    visitor.says("Done: 2 pictures.")
    expect(page.locator("#shots button")).to_have_count(2)


@pytest.mark.parametrize(
    ("label", "text", "place"),
    [("Seed", "-1", "#seed-problem"), ("What to change", "", "#prompt-problem")],
)
def test_a_wrong_value_is_said_at_its_field(visitor: Visitor, label: str, text: str, place: str) -> None:
    visitor.choose(BEFORE)
    visitor.ask("make the background blue")
    field = visitor.page.get_by_label(label, exact=True)
    field.fill(text)
    visitor.run()

    expect(visitor.page.locator(place)).not_to_be_empty()
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")


def test_what_the_server_refuses_is_said_at_its_field(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo, refused=(400,))
    visitor.choose(BEFORE)
    visitor.ask("make the background blue", size="own")
    visitor.page.get_by_label("Width and height").fill("4096x64")
    visitor.run()

    visitor.says("size", at="#size-problem")
    expect(visitor.page.get_by_label("Width and height")).to_be_focused()
