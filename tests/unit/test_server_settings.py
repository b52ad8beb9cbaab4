"""Facts about the server's settings."""

from __future__ import annotations

import pytest

from imageedit_server.arguments import ARGUMENTS, environment_name
from imageedit_server.errors import EXIT_CODES, SettingsInvalid, exit_code
from imageedit_server.settings import Settings, settings_from, termination_log_path
from imageedit_server.worker.shapes import Size

REQUIRED = ("--model-dir", "demo", "--sizes", "768x768,768x576")


def settings(*arguments: str, **environ: str) -> Settings:
    return settings_from([*REQUIRED, *arguments], environ)


def test_the_arguments_of_the_contract_are_taken() -> None:
    made = settings(
        *("--model-name", "qwen", "--model-revision", "2026-11-a", "--revision-hash", "5c0f"),
        *("--device", "npu", "--steps", "24", "--queue-hard-limit", "7"),
    )

    assert (made.model_name, made.model_revision, made.revision_hash) == ("qwen", "2026-11-a", "5c0f")
    assert (made.device, made.steps, made.queue_hard_limit) == ("npu", 24, 7)
    assert made.sizes == (Size(768, 768), Size(768, 576))


def test_the_defaults_are_those_of_the_contract() -> None:
    made = settings()

    assert (made.port, made.probe_port, made.drain_propagation_s) == (8000, 8080, 5.0)
    assert made.max_body_bytes == 60 * 1024 * 1024
    assert made.stub_edit_s is None


def test_an_argument_wins_over_its_variable() -> None:
    assert settings(IMAGEEDIT_STEPS="4").steps == 4
    assert settings("--steps", "8", IMAGEEDIT_STEPS="4").steps == 8


def test_required_arguments_can_come_from_the_environment() -> None:
    made = settings_from([], {"IMAGEEDIT_MODEL_DIR": "/models/qwen", "IMAGEEDIT_SIZES": "64x64"})

    assert made.model_dir == "/models/qwen"


OTHER_VALUES = {
    "model-name": "other",
    "model-dir": "/models/other",
    "model-revision": "r2",
    "revision-hash": "ab12",
    "device": "npu",
    "sizes": "96x96",
    "steps": "3",
    "queue-hard-limit": "9",
    "max-wait": "30",
    "dynamic-steps": "on",
    "jobs-dir": "/jobs",
    "jobs-ttl": "60",
    "jobs-max-open": "5",
    "jobs-max-count": "6",
    "jobs-max-bytes": "4096",
    "host": "127.0.0.1",
    "port": "8123",
    "probe-port": "8124",
    "drain-propagation": "1.5",
    "max-body-bytes": "4096",
    "max-pixels": "4096",
    "alpha-colour": "#102030",
    "max-references": "3",
    "warm-cfg": "on",
    "warmup-budget": "90",
    "start-deadline": "60.5",
    "manifest-digest": "sha256:" + "0a" * 32,
    "steps-high": "30",
    "files-dir": "/files",
    "files-ttl": "60",
    "files-max-count": "5",
    "files-max-bytes": "4096",
    "api-keys-file": "/keys",
    "prompt-denylist": "/denylist",
    "safety-classifier": "/other",
    "safety-labels": "violence,gore",
    "safety-threshold": "0.25",
    "cors-origins": "https://a.example",
    "stream-heartbeat": "2",
    "page": "off",
    "log-level": "debug",
    "stub-edit-seconds": "0.25",
    "stub-load-seconds": "0.75",
}


def test_every_argument_is_tried_here() -> None:
    assert OTHER_VALUES.keys() == ARGUMENTS.keys()


@pytest.mark.parametrize(("argument", "value"), OTHER_VALUES.items())
def test_argument_and_variable_have_the_same_effect(argument: str, value: str) -> None:
    required = {"IMAGEEDIT_MODEL_DIR": "demo", "IMAGEEDIT_SIZES": "64x64"}
    # These two need each other.
    required |= {"IMAGEEDIT_SAFETY_CLASSIFIER": "/classifier", "IMAGEEDIT_SAFETY_LABELS": "nsfw"}
    by_argument = settings_from([f"--{argument}", value], required)

    assert by_argument == settings_from([], required | {environment_name(argument): value})
    assert by_argument != settings_from([], required)


@pytest.mark.parametrize(("steps", "high"), [("16", 24), ("24", 24), ("50", 50)])
def test_high_quality_has_never_fewer_steps_than_standard(steps: str, high: int) -> None:
    assert settings("--steps", steps).steps_high == high


@pytest.mark.parametrize(
    ("text", "colour"),
    [("white", (255, 255, 255)), ("rebeccapurple", (102, 51, 153)), ("#1e90FF", (30, 144, 255)), ("#fff", (255,) * 3)],
)
def test_colours_are_names_of_css_or_numbers(text: str, colour: tuple[int, int, int]) -> None:
    assert settings("--alpha-colour", text).alpha_colour == colour


def test_several_origins_are_taken() -> None:
    made = settings("--cors-origins", "https://a.example, http://localhost:3000,*")

    assert made.cors_origins == ("https://a.example", "http://localhost:3000", "*")


def test_a_port_that_kubernetes_injects_for_a_service_is_ignored() -> None:
    assert settings(IMAGEEDIT_PORT="tcp://10.96.0.7:80").port == 8000


def test_pod_identity_comes_from_the_environment() -> None:
    made = settings(
        IMAGEEDIT_NAMESPACE="ml", IMAGEEDIT_DEPLOYMENT="qwen-edit", IMAGEEDIT_POD="qwen-edit-1", IMAGEEDIT_POD_UID="u"
    )

    assert (made.namespace, made.deployment, made.pod, made.pod_uid) == ("ml", "qwen-edit", "qwen-edit-1", "u")


def test_the_drain_token_is_not_shown() -> None:
    assert "s3cret" not in repr(settings(IMAGEEDIT_POD_UID="s3cret"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "64x64"], "--model-dir is missing; give it, or set IMAGEEDIT_MODEL_DIR"),
        (["--model-dir", "demo"], "--sizes is missing"),
        ([*REQUIRED, "--steps", "1"], "--steps '1' is not a whole number from 2 to 200"),
        ([*REQUIRED, "--steps", "many"], "--steps 'many' is not a whole number from 2 to 200"),
        ([*REQUIRED, "--device", "gpu"], "--device 'gpu' is not one of npu, cpu"),
        ([*REQUIRED, "--queue-hard-limit", "-1"], "--queue-hard-limit '-1' is not a whole number from 0 to 10000"),
        (
            [*REQUIRED, "--drain-propagation", "nan"],
            "--drain-propagation 'nan' is not a number of seconds from 0 to 600",
        ),
        (
            [*REQUIRED, "--stub-edit-seconds", "-2"],
            "--stub-edit-seconds '-2' is not a number of seconds from 0 to 3600",
        ),
        # Without a pause between them a stream sent sixteen thousand signs of life a second.
        (
            [*REQUIRED, "--stream-heartbeat", "0"],
            "--stream-heartbeat '0' is not a number of seconds from 0.1 to 3600",
        ),
        ([*REQUIRED, "--alpha-colour", "whiteish"], "--alpha-colour 'whiteish' is not a colour; write a name of CSS"),
        ([*REQUIRED, "--alpha-colour", "#11223344"], "--alpha-colour '#11223344' is not a colour"),
        ([*REQUIRED, "--jobs-max-open", "0"], "--jobs-max-open '0' is not a whole number from 1 to 100000"),
        ([*REQUIRED, "--port", "70000"], "--port '70000' is not a whole number from 1 to 65535"),
        ([*REQUIRED, "--port", "9000", "--probe-port", "9000"], "--probe-port 9000 is the port of the API too"),
        ([*REQUIRED, "--max-body-bytes", "1"], "--max-body-bytes '1' is not a whole number from 1024 to 1073741824"),
        ([*REQUIRED, "--log-level", "loud"], "--log-level 'loud' is not one of debug, info, warning, error"),
        ([*REQUIRED, "--max-references", "5"], "--max-references '5' is not a whole number from 1 to 4"),
        ([*REQUIRED, "--warm-cfg", "yes"], "--warm-cfg 'yes' is not one of off, on"),
        ([*REQUIRED, "--manifest-digest", "sha256:AB"], "is not sha256: and 64 hexadecimal digits"),
        ([*REQUIRED, "--steps-high", "15"], "--steps-high '15' is not a whole number from 16 to 200"),
        ([*REQUIRED, "--cors-origins", "a.example"], "'a.example' is not an origin; write https://pages.example, or *"),
        ([*REQUIRED, "--model-name", " "], "--model-name is empty"),
        ([*REQUIRED, "--api-keys-file", " "], "--api-keys-file is empty but for white space; give a value"),
        ([*REQUIRED, "--sizes", "768"], "'768' is not a size"),
        ([*REQUIRED, "--sizes", "768x768,,64x64"], "'' is not a size"),
        ([*REQUIRED, "--sizes", "100x128"], "side 100 of 100x128 is not a multiple of 32 from 32 to 4096"),
        ([*REQUIRED, "--sizes", "64x8192"], "side 8192 of 64x8192 is not a multiple of 32 from 32 to 4096"),
        ([*REQUIRED, "--sizes", "64x64,64x64"], "64x64 is there twice"),
        ([*REQUIRED, "--model-name", "caf\udce9"], "--model-name 'caf\\udce9' is not UTF-8 text"),
        ([*REQUIRED, "--turbo", "yes"], "unrecognized arguments: --turbo"),
        ([*REQUIRED, "--step", "4"], "unrecognized arguments: --step"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value_and_range(arguments: list[str], message: str) -> None:
    with pytest.raises(SettingsInvalid) as raised:
        settings_from(arguments, {})

    assert message in str(raised.value)


def test_white_space_around_a_setting_is_no_part_of_it() -> None:
    """A variable made from a file ends with its line end: jobs were kept in a folder of another name."""
    assert settings("--jobs-dir", "/data/jobs\n", "--device", " cpu ").jobs_dir == "/data/jobs"


def test_the_termination_log_is_known_without_valid_settings() -> None:
    assert termination_log_path({}) == "/dev/termination-log"
    assert termination_log_path({"IMAGEEDIT_TERMINATION_LOG": "/tmp/t"}) == "/tmp/t"


def test_the_engine_gets_its_part() -> None:
    engine = settings("--steps", "4", "--stub-edit-seconds", "0.5").engine()

    assert (engine.model_dir, engine.device, engine.steps, engine.stub_edit_s) == ("demo", "cpu", 4, 0.5)


def test_exit_codes_are_distinct_and_an_unknown_reason_ends_with_one() -> None:
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)
    assert exit_code("ModelMissing") == 65
    assert exit_code("SomethingElse") == 1
