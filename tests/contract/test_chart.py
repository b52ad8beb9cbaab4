"""The chart, the resource's schema and the documentation say the same."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.dashboard_queries import dashboard, metric_names, panel_queries, panels
from imageedit_operator.cli import rights as plugin
from imageedit_operator.core import pod_fields
from imageedit_operator.core.conditions import REASONS, TYPES
from imageedit_operator.core.resource import parse
from imageedit_operator.kube.access import FOR_WORDS, REQUIRED, Right, for_lease

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "crds" / "imageeditdeployments.yaml"
CHART = ROOT / "helm" / "imageedit-operator"
SPEC_PAGE = ROOT / "docs" / "spec" / "imageeditdeployment.md"
METRICS_PAGE = ROOT / "docs/metrics.md"
HISTOGRAM_SUFFIX = re.compile(r"_(bucket|sum|count)$")

Schema = Mapping[str, Any]


@cache
def schema() -> Schema:
    """The schema of the only version."""
    (version,) = yaml.safe_load(SOURCE.read_text())["spec"]["versions"]
    return dict(version["schema"]["openAPIV3Schema"])


def fields(node: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Every property below an object, with its dotted path; the items of lists are not fields.

    Below one that keeps unknown fields are those of a pod, which Kubernetes explains.
    """
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        if not child.get("x-kubernetes-preserve-unknown-fields"):
            yield from fields(child, f"{path}.{name}")


def fields_of(part: str) -> dict[str, Schema]:
    return dict(fields(schema()["properties"][part], part))


def sections() -> dict[str, str]:
    """The text under each heading that names a field."""
    parts = re.split(r"^### `(spec\.[A-Za-z.]+)`$", SPEC_PAGE.read_text(), flags=re.M)
    texts = (re.split(r"^## ", text, flags=re.M)[0] for text in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


# --- the resource


def test_the_chart_carries_the_same_resource_definition() -> None:
    assert (CHART / "crds" / SOURCE.name).read_bytes() == SOURCE.read_bytes()


def test_every_field_has_a_description() -> None:
    without = [
        path for part in ("spec", "status") for path, node in fields_of(part).items() if not node.get("description")
    ]
    assert without == []


def test_every_string_and_list_of_the_spec_is_bounded() -> None:
    def unbounded(path: str, node: Schema) -> Iterator[str]:
        if node.get("type") == "string" and "maxLength" not in node and "enum" not in node:
            yield path
        if node.get("type") == "array":
            if "maxItems" not in node:
                yield path
            yield from unbounded(f"{path}[]", node["items"])
        if path.endswith("[]"):  # what lies below other objects comes from fields_of
            for name, child in fields(node, path):
                yield from unbounded(name, child)

    assert [found for path, node in fields_of("spec").items() for found in unbounded(path, node)] == []


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("env", pod_fields.RESERVED_VARIABLES),
        ("volumes", (*pod_fields.RESERVED_VOLUMES, pod_fields.RESERVED_VOLUME_PREFIX)),
        ("volumeMounts", pod_fields.RESERVED_PATHS),
    ],
)
def test_the_schema_reserves_the_names_that_the_operator_does(path: str, names: tuple[str, ...]) -> None:
    field = "mountPath" if path == "volumeMounts" else "name"
    validations = fields_of("spec")[f"spec.server.{path}"]["items"]["properties"][field]["x-kubernetes-validations"]
    assert set(re.findall(r"'([^']+)'", validations[-1]["rule"])) - {"/"} == set(names)


def test_every_rule_has_a_message() -> None:
    def rules(node: Schema) -> Iterator[Mapping[str, Any]]:
        yield from node.get("x-kubernetes-validations", [])
        for child in [*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])]:
            yield from rules(child)

    found = list(rules(schema()))
    assert found
    assert [rule["rule"] for rule in found if not rule.get("message")] == []


def test_the_spec_page_has_a_heading_for_each_field_of_the_spec() -> None:
    assert set(sections()) == set(fields_of("spec"))


def test_the_spec_page_has_a_row_for_each_field_of_the_status() -> None:
    rows = set(re.findall(r"^\| `(status\.[A-Za-z0-9.]+)` \|", SPEC_PAGE.read_text(), flags=re.M))
    assert rows == set(fields_of("status"))


@pytest.mark.parametrize("path", sorted(fields_of("spec")))
def test_the_spec_page_gives_the_default_and_whether_the_field_is_required(path: str) -> None:
    node = fields_of("spec")[path]
    parent: Schema = schema()
    for name in path.split(".")[:-1]:
        parent = parent["properties"][name]
    first = sections()[path].strip().splitlines()[0]
    default = re.search(r"Default `([^`]*)`", first)
    assert (json.dumps(default.group(1)) if default else None) == (
        json.dumps(_as_text(node["default"])) if "default" in node else None
    )
    assert first.startswith("Required") == (path.rsplit(".", 1)[1] in parent.get("required", []))


@pytest.mark.parametrize("path", sorted(path for path, node in fields_of("spec").items() if node["type"] != "object"))
def test_page_and_schema_agree_on_what_a_change_does(path: str) -> None:
    first = sections()[path].strip().splitlines()[0]
    description = fields_of("spec")[path]["description"]
    assert first.endswith(("· rolls pods", "· at once"))
    assert first.endswith("· rolls pods") == ("A change rolls the pods" in description)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# --- the values


def test_the_values_schema_knows_exactly_the_values() -> None:
    def keys(node: Mapping[str, Any], path: str = "") -> Iterator[str]:
        for name, child in node.get("properties", {}).items():
            yield f"{path}{name}"
            yield from keys(child, f"{path}{name}.")

    def values(node: object, path: str = "") -> Iterator[str]:
        if isinstance(node, dict):
            for name, child in node.items():
                yield f"{path}{name}"
                yield from values(child, f"{path}{name}.")

    known = set(keys(json.loads((CHART / "values.schema.json").read_text()))) - {"global"}
    given = {
        path for path in values(yaml.safe_load((CHART / "values.yaml").read_text())) if path in known or "." not in path
    }
    assert given == known


def test_the_charts_readme_lists_every_value() -> None:
    text = (CHART / "README.md").read_text()
    assert [name for name in yaml.safe_load((CHART / "values.yaml").read_text()) if f"`{name}" not in text] == []


# --- the dashboard


def documented_metrics() -> set[str]:
    """Every metric name that the page lists in a table row or heading."""
    return set(re.findall(r"`(imageedit_[a-z0-9_]+)(?:\{[^`]*\})?`", METRICS_PAGE.read_text()))


def test_every_metric_of_the_dashboard_is_documented() -> None:
    documented = documented_metrics()
    unknown = {
        str(query): sorted(missing)
        for query in panel_queries()
        if (missing := {name for name in metric_names(query.expr) if HISTOGRAM_SUFFIX.sub("", name) not in documented})
    }
    assert unknown == {}


def test_every_variable_of_the_dashboard_reads_a_documented_metric() -> None:
    queries = [v["definition"] for v in dashboard()["templating"]["list"] if v["type"] == "query"]
    read = {name for query in queries for name in re.findall(r"label_values\((imageedit_[a-z_]+)", query)}
    assert len(queries) == 2
    assert read
    assert read <= documented_metrics()


def test_every_query_reads_a_metric() -> None:
    assert [str(query) for query in panel_queries() if not metric_names(query.expr)] == []


def test_panels_lie_inside_the_grid_and_do_not_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels(dashboard()):
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for cell in itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])):
            assert cell not in taken, f"{panel['title']} lies over {taken.get(cell)}"
            taken[cell] = panel["title"]


def test_panels_have_ids_of_their_own_and_say_what_they_show() -> None:
    ids = [panel["id"] for panel in panels(dashboard())]
    assert len(ids) == len(set(ids))
    assert [p["title"] for p in panels(dashboard()) if p["type"] != "row" and not p.get("description")] == []


def test_the_dashboard_keeps_its_address() -> None:
    assert dashboard()["uid"] == "imageedit-overview"


# --- what the operator does


def test_the_spec_page_explains_every_reason_of_a_condition() -> None:
    text = SPEC_PAGE.read_text()
    table = text[text.index("| reason | meaning") :]
    assert set(re.findall(r"^\| `([A-Za-z]+)` \|", table, flags=re.M)) == REASONS


def test_the_spec_page_explains_every_condition() -> None:
    table = SPEC_PAGE.read_text().split("| condition | True means")[1].split("| reason | meaning")[0]
    assert tuple(re.findall(r"^\| `([A-Za-z]+)` \|", table, flags=re.M)) == TYPES


def test_every_reason_fits_the_schema() -> None:
    pattern = schema()["properties"]["status"]["properties"]["conditions"]["items"]["properties"]["reason"]["pattern"]
    assert [reason for reason in REASONS if not re.search(pattern, reason)] == []


@pytest.mark.parametrize("path", sorted(path for path, node in fields_of("spec").items() if "default" in node))
def test_the_operator_fills_in_the_same_defaults_as_the_schema(path: str) -> None:
    """An object that was stored before a default existed is read without it."""
    bare = {
        "metadata": {"name": "d", "namespace": "n", "uid": "u", "generation": 1},
        "spec": {
            "model": {"name": "m", "revision": "r", "source": {"demo": {}}},
            "server": {"image": "i"},
            "autoscaling": {"maxReplicas": 2, "metrics": {"prometheus": {"address": "http://p"}}},
            **({"rollout": {"canary": {}}} if path.startswith("spec.rollout.canary.") else {}),
        },
    }
    filled: dict[str, Any] = json.loads(json.dumps(bare))
    *parents, last = path.split(".")
    node = filled
    for name in parents:
        node = node.setdefault(name, {})
    node[last] = fields_of("spec")[path]["default"]
    assert parse(filled) == parse(bare)


def rules_of(template: str, release: str) -> set[tuple[str, str, tuple[str, ...], str]]:
    """Group, resource, verbs and object name of every rule in a named template."""
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()
    text = helpers.split(f'"imageedit-operator.{template}" -}}}}')[1].split("{{- end -}}")[0]
    rules = yaml.safe_load(text.replace('{{ include "imageedit-operator.fullname" . }}', release))
    return {
        (*rule["apiGroups"], *rule["resources"], tuple(rule["verbs"]), *rule.get("resourceNames", [""]))
        for rule in rules
    }


@pytest.mark.parametrize(
    ("template", "rights"),
    [
        ("namespacedRules", (*REQUIRED, *FOR_WORDS)),
        ("leaseRules", for_lease("the-lease")),
        ("pluginRules", plugin.IN_NAMESPACE),
        ("pluginCardRules", plugin.FOR_CARDS),
        ("pluginHealthRules", plugin.FOR_HEALTH),
    ],
)
def test_the_charts_rights_are_the_ones_that_operator_and_plugin_use(template: str, rights: tuple[Right, ...]) -> None:
    assert rules_of(template, "the-lease") == {
        (right.group, right.resource, right.verbs, right.name) for right in rights
    }
