"""The page about the API and the OpenAPI document say what the code takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from imageedit_server.api.app import api_app
from imageedit_server.api.fields import FORM_ONLY_FIELDS, REFUSED_FIELDS, EditFields, from_values
from imageedit_server.api.jobs import Jobs
from imageedit_server.api.openapi import document
from imageedit_server.api.responses import mask_word
from imageedit_server.api.service import Service
from imageedit_server.arguments import ARGUMENTS
from imageedit_server.engine.kinds import KINDS
from imageedit_server.errors import InvalidInput
from imageedit_server.settings import settings_from

PAGE = (Path(__file__).parents[2] / "docs" / "server-api.md").read_text()
PICTURES = ("image", "mask")


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def field_rows() -> dict[str, str]:
    """Field -> its row in the table of fields."""
    return {row[1]: row[0] for row in re.finditer(r"^\| `(\w+)` \|.*$", section("Fields"), re.MULTILINE)}


def properties(path: str) -> dict[str, Any]:
    ((_, media),) = document(needs_key=False)["paths"][path]["post"]["requestBody"]["content"].items()
    found: dict[str, Any] = media["schema"]["properties"]
    return found


def test_the_page_has_a_row_for_each_field_and_no_other() -> None:
    assert set(field_rows()) == {*EditFields.model_fields, *PICTURES}


def test_the_page_names_each_field_that_is_refused_with_advice() -> None:
    line = next(line for line in section("Fields").splitlines() if line.startswith("Refused with a message"))

    assert set(re.findall(r"`([\w\[\]]+)`", line)) == set(REFUSED_FIELDS)


def test_the_page_names_what_the_json_call_refuses() -> None:
    line = next(line for line in section("Fields").splitlines() if line.startswith("`/v1/edit` has one"))

    assert set(re.findall(r"`(\w+)`", line)) == set(FORM_ONLY_FIELDS)


@pytest.mark.parametrize("name", ["quality", "output_format", "background", "response_format"])
def test_the_page_names_each_value_of_a_choice(name: str) -> None:
    (choice, _) = properties("/v1/images/generations")[name]["anyOf"]

    assert re.findall(r"`(\w+)`", field_rows()[name].split("|")[2]) == choice["enum"]


@pytest.mark.parametrize(
    "name", ["n", "seed", "true_cfg_scale", "guidance_scale", "mask_feather", "output_compression"]
)
def test_the_page_names_the_range_of_a_number(name: str) -> None:
    (number, _) = EditFields.model_json_schema()["properties"][name]["anyOf"]

    assert field_rows()[name].split("|")[2].strip() == f"{number['minimum']:g} to {number['maximum']:.0f}"


def test_the_page_says_what_each_pipeline_class_takes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| (yes|no) \| ([^|]+) \| `(\w+)` \|$", section("Models"), re.M)
    on_page = {
        name: (edits, generations, pictures.strip("`"), mask) for name, edits, generations, pictures, mask in rows
    }

    assert on_page == {
        name: (
            "with a mask" if kind.mask_required else "yes" if kind.edits else "no",
            "no" if kind.edits else "yes",
            "--max-references" if kind.most_pictures is None else str(kind.most_pictures),
            mask_word(
                kind.capabilities(max_references=1, max_prompt_tokens=1024, guidance=False, negative_prompt=False)
            ),
        )
        for name, kind in KINDS.items()
    }


def test_the_arguments_on_the_page_exist() -> None:
    named = set(re.findall(r"`--([a-z-]+)", PAGE))

    assert named
    assert named <= set(ARGUMENTS)


def calls(*, jobs: bool, model: str = "{id}", job: str = "{id}") -> set[tuple[str, str]]:
    """Method and path of everything in the document."""
    return {
        (method.upper(), path.replace("{model}", model).replace("{job}", job))
        for path, methods in document(needs_key=False, jobs=jobs)["paths"].items()
        for method in methods
    }


def test_the_page_and_the_document_have_the_same_calls() -> None:
    rows = re.findall(r"^\| (`[A-Z]+ .*?) \|", section("Calls"), re.MULTILINE)
    on_page = {call for row in rows for call in re.findall(r"`([A-Z]+) (\S+?)`", row)}

    assert on_page == calls(jobs=True)


@pytest.mark.parametrize("jobs", [False, True])
def test_every_route_of_the_application_is_in_the_document(tmp_path: Path, jobs: bool) -> None:
    folder = str(tmp_path) if jobs else ""
    arguments = ["--model-dir", "demo", "--sizes", "64x64", "--jobs-dir", folder, "--page", "off"]
    service = Service(settings_from(arguments, {}))
    app: Any = api_app(service, Jobs(service, tmp_path) if jobs else None)
    routes = {(method, route.path) for route in app._app.routes for method in route.methods}

    assert routes == calls(jobs=jobs, model="{model_id:path}", job="{job_id}")


def test_the_document_has_the_fields_of_each_call() -> None:
    fields = set(EditFields.model_fields)

    assert set(properties("/v1/images/edits")) == fields | set(PICTURES)
    assert set(properties("/v1/edit")) == fields - set(FORM_ONLY_FIELDS) | set(PICTURES)
    assert set(properties("/v1/images/generations")) == fields - {"mask_feather"}


def test_every_reference_of_the_document_leads_somewhere() -> None:
    made = document(needs_key=True, jobs=True)
    for reference in re.findall(r"'\$ref': '#/([^']+)'", str(made)):
        node: Any = made
        for step in reference.split("/"):
            node = node[step]
        assert node


def test_keys_are_in_the_document_only_where_they_are_needed() -> None:
    assert "security" not in document(needs_key=False)
    assert document(needs_key=True)["security"] == [{"key": []}]
    assert document(needs_key=True)["paths"]["/v1/files/{name}"]["get"]["security"] == []


VALUES: list[tuple[str, object]] = [
    *(("prompt", value) for value in ("a", " a ", "", "  ", "x" * 4000, "x" * 4001, None, 5)),
    *(("n", value) for value in (None, 0, 1, 4, 5, "1", 1.5, True)),
    *(("seed", value) for value in (0, -1, 2**32 - 1, 2**32)),
    *(("quality", value) for value in ("high", "low", None)),
    *(("steps", value) for value in (1, 2)),
    *(("true_cfg_scale", value) for value in (0.5, 1, 1.5, 20, 20.5, "2")),
    *(("output_compression", value) for value in (-1, 0, 100, 101)),
    *(("partial_images", value) for value in (0, 1, None)),
    *(("background", value) for value in ("auto", "opaque", "transparent")),
    *(("stream", value) for value in (True, False, "true", 1)),
    *(("user", value) for value in ("", "x" * 512, "x" * 513)),
    *(("request_id", value) for value in ("", "a", "x" * 129)),
    ("strength", 1),
    ("mask_image", "a"),
]


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_schema_and_server_agree_on_each_value(name: str, value: object) -> None:
    ((_, media),) = document(needs_key=False)["paths"]["/v1/images/generations"]["post"]["requestBody"][
        "content"
    ].items()
    sent = {"prompt": "a"} | {name: value}
    by_schema = jsonschema.Draft202012Validator(media["schema"]).is_valid(sent)
    try:
        # An empty prompt is refused a step later.
        by_server = from_values(sent).prompt.strip() != "" and len(str(sent["prompt"])) <= 4000
    except InvalidInput:
        by_server = False

    assert by_schema == by_server
