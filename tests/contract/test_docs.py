"""The documents lead somewhere, and the Dockerfiles keep what they promise."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for folder in (".", "docs", "helm", "operator", "server", "tests/localcluster")
    for page in (ROOT / folder).glob("**/*.md" if folder != "." else "*.md")
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_the_documents_lead_to_files(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_of_the_same_page_lead_there(page: Path) -> None:
    text = page.read_text()
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}
    assert [anchor for anchor in re.findall(r"\]\(#([^)]+)\)", text) if anchor not in anchors] == []


@pytest.mark.parametrize("name", ["operator", "server"])
def test_an_image_names_no_base_of_its_own_and_runs_as_a_numbered_user(name: str) -> None:
    lines = (ROOT / name / "Dockerfile").read_text().splitlines()
    instructions = [line for line in lines if re.match(r"[A-Z]+ ", line)]
    assert "ARG BASE_IMAGE" in instructions
    assert [line for line in instructions if line.startswith("FROM")] == ["FROM ${BASE_IMAGE}"]
    assert "USER 65532:65532" in instructions
    entrypoint = instructions[-1].removeprefix("ENTRYPOINT ")
    assert len(json.loads(entrypoint)) == 1


@pytest.mark.parametrize("name", ["operator", "server"])
def test_an_image_file_names_no_package_registry(name: str) -> None:
    assert re.findall(r"https?://|--index-url|--extra-index-url", (ROOT / name / "Dockerfile").read_text()) == []


def test_the_ascend_engine_pins_what_the_engine_pins_but_leaves_torch_to_the_base() -> None:
    def pins(file: str) -> dict[str, str]:
        return dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / file).read_text(), flags=re.M))

    everything, ascend = pins("requirements/engine.txt"), pins("server/engine-ascend.txt")
    assert ascend.items() <= everything.items()
    assert everything.keys() - ascend.keys() == {"torch", "torchvision", "numpy"}
