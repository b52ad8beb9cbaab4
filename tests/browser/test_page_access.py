"""Everybody can use the page: names for screen readers, contrast, small screens, dark screens, less motion."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import Visit
from browser.visitor import Visitor
from server.pictures import Scene
from server.running import RunningServer

BEFORE = Scene().draw()
STATES = ("empty", "picture", "mask", "problem", "result")
CONTROLS = {"button", "link", "textbox", "combobox", "slider", "radio", "tab", "progressbar", "application", "dialog"}
# WCAG 2.2 AA for text; large text may have 3, and no text here counts on that.
CONTRAST = 4.5

# For each visible text: its colour on the first opaque background behind it, as WCAG counts contrast.
CONTRASTS = """() => {
  const light = (parts) => parts.slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const parts = numbers(getComputedStyle(one).backgroundColor);
      if (parts.length === 3 || parts[3] > 0.7) return parts;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const aside = element.closest("#announce, noscript, option, :disabled");
    if (!node.data.trim() || !element.checkVisibility() || aside) continue;
    const one = light(numbers(getComputedStyle(element).color)), other = light(behind(element));
    found.push([node.data.trim(), (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)]);
  }
  return found;
}"""


def bring_to(visitor: Visitor, state: str) -> None:
    """Bring the page into one of `STATES`."""
    if state == "empty":
        return
    visitor.choose(BEFORE)
    if state == "mask":
        visitor.page.get_by_role("button", name="Mask", exact=True).click()
        visitor.drag_on_mask((0.2, 0.2), (0.8, 0.8))
    if state == "problem":
        visitor.run()
        expect(visitor.page.locator("#prompt-problem")).not_to_be_empty()
    if state == "result":
        visitor.ask("make the background blue", steps=2)
        visitor.run()
        expect(visitor.page.locator("#status")).to_contain_text("Done")
        expect(visitor.page.locator("#stage")).to_have_attribute("data-view", "result")


def nodes(visitor: Visitor) -> list[dict[str, Any]]:
    """The accessibility tree as the browser gives it to screen readers."""
    session = visitor.page.context.new_cdp_session(visitor.page)
    session.send("Accessibility.enable")
    found: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    return [node for node in found if not node["ignored"]]


@pytest.mark.parametrize("state", STATES)
def test_every_control_has_a_name(visit: Visit, demo: RunningServer, state: str) -> None:
    visitor = visit(demo)
    bring_to(visitor, state)
    controls = [node for node in nodes(visitor) if node["role"]["value"].lower() in CONTROLS]
    names = [node.get("name", {}).get("value", "") for node in controls]

    assert len(controls) > 10
    assert [node["role"]["value"] for node, name in zip(controls, names, strict=True) if not name.strip()] == []


def test_no_two_buttons_in_sight_have_one_name(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo)
    bring_to(visitor, "mask")
    names = [node["name"]["value"] for node in nodes(visitor) if node["role"]["value"] == "button"]

    assert sorted(names) == sorted(set(names))


def test_the_parts_of_the_page_are_landmarks_and_headings(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo)
    roles = [node["role"]["value"] for node in nodes(visitor)]

    assert {"banner", "main", "form", "region"} <= set(roles)
    assert visitor.page.locator("h1").count() == 1
    assert visitor.page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_text_stands_out(visit: Visit, demo: RunningServer, scheme: str, state: str) -> None:
    visitor = visit(demo, color_scheme=scheme, reduced_motion="reduce")
    bring_to(visitor, state)
    measured = visitor.page.evaluate(CONTRASTS)

    assert len(measured) > 10
    assert [(text, round(ratio, 2)) for text, ratio in measured if ratio < CONTRAST] == []


def test_a_dark_screen_gets_a_dark_page(visit: Visit, demo: RunningServer) -> None:
    def lightness(scheme: str) -> int:
        colour = visit(demo, color_scheme=scheme).page.evaluate("getComputedStyle(document.body).backgroundColor")
        return int(colour.removeprefix("rgb(").split(",")[0])

    assert lightness("dark") < 40
    assert lightness("light") > 220


@pytest.mark.parametrize("state", STATES)
def test_a_narrow_screen_needs_no_scrolling_sideways(visit: Visit, demo: RunningServer, state: str) -> None:
    visitor = visit(demo, viewport={"width": 360, "height": 740})
    bring_to(visitor, state)

    assert visitor.page.evaluate("document.documentElement.scrollWidth") == 360


def test_on_a_touch_screen_the_mask_is_drawn_with_a_finger(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo, viewport={"width": 360, "height": 740}, has_touch=True)
    visitor.choose(BEFORE)
    visitor.page.get_by_role("button", name="Mask", exact=True).tap()
    visitor.page.locator("#frame").tap()

    visitor.says("marked red", at="#coverage")


def test_the_result_moves_nothing_in_the_form(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo, viewport={"width": 360, "height": 740})
    visitor.choose(BEFORE)
    visitor.ask("make the background blue", steps=2)
    place = "(id) => document.getElementById(id).getBoundingClientRect().top + scrollY"
    before = visitor.page.evaluate(place, "seed")
    visitor.run()
    visitor.result()

    assert visitor.page.evaluate(place, "seed") == before


def test_the_focus_can_be_seen_on_every_stop_of_the_tab_key(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo)
    bring_to(visitor, "mask")
    unseen, stops = [], set()
    visitor.page.locator("body").evaluate(
        "(body) => { body.tabIndex = -1; body.focus(); body.removeAttribute('tabindex'); }"
    )
    for _ in range(40):
        visitor.page.keyboard.press("Tab")
        name, outlined = visitor.page.evaluate(
            """() => {
              const element = document.activeElement;
              const shown = [element, element.nextElementSibling ?? element].map((one) => getComputedStyle(one));
              return [element.id || element.value || element.tagName,
                      shown.some((style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2)];
            }"""
        )
        stops.add(name)
        if not outlined and name != "BODY":
            unseen.append(name)

    assert {"prompt", "run", "mask", "seed", "copy", "mask-undo"} <= stops
    assert unseen == []


def test_less_motion_means_none(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo, reduced_motion="reduce")
    visitor.choose(BEFORE)
    visitor.ask("make the background blue")
    visitor.run()

    assert visitor.page.evaluate("document.getAnimations().length") == 0
    visitor.says("Done.")


def test_the_frame_of_another_page_cannot_hold_this_one(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo)
    visitor.page.evaluate("document.body.append(Object.assign(document.createElement('iframe'), { src: '/' }))")
    visitor.page.wait_for_timeout(500)

    assert any("frame" in complaint for complaint in visitor.complaints)
    visitor.complaints.clear()
