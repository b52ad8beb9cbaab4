"""The server's settings: one frozen value, built by a pure function from arguments and environment.

Nothing else in the package reads the environment.
`docs/reference/pod-contract.md` holds the arguments that the operator gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from imageedit_server import setting_values
from imageedit_server.arguments import given_texts
from imageedit_server.errors import SettingsInvalid
from imageedit_server.safety.settings import SafetySettings, safety_settings
from imageedit_server.worker.protocol import EngineSettings
from imageedit_server.worker.shapes import Size

DEFAULT_TERMINATION_LOG = "/dev/termination-log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that can be set; see `arguments.ARGUMENTS` for the meaning of each."""

    model_name: str
    model_dir: str
    model_revision: str
    revision_hash: str
    device: str
    sizes: tuple[Size, ...]
    steps: int
    queue_hard_limit: int
    max_wait_s: float | None
    dynamic_steps: bool
    jobs_dir: str
    jobs_ttl_s: float
    jobs_max_open: int
    jobs_max_count: int
    jobs_max_bytes: int
    host: str
    port: int
    probe_port: int
    drain_propagation_s: float
    max_body_bytes: int
    max_pixels: int
    alpha_colour: tuple[int, int, int]
    log_level: str
    stub_edit_s: float | None
    stub_load_s: float
    namespace: str
    deployment: str
    pod: str
    pod_uid: str = field(repr=False)
    termination_log: str
    max_references: int
    warm_cfg: bool
    warmup_budget_s: float | None
    start_deadline_s: float
    manifest_digest: str
    steps_high: int
    files_dir: str
    files_ttl_s: float
    files_max_count: int
    files_max_bytes: int
    api_keys_file: str
    cors_origins: tuple[str, ...]
    stream_heartbeat_s: float
    traces: bool
    safety: SafetySettings
    page: bool

    def engine(self) -> EngineSettings:
        """The part that the worker process needs."""
        return EngineSettings(
            model_dir=self.model_dir,
            device=self.device,
            sizes=self.sizes,
            steps=self.steps,
            stub_edit_s=self.stub_edit_s,
            stub_load_s=self.stub_load_s,
            max_references=self.max_references,
            warm_cfg=self.warm_cfg,
            warmup_budget_s=self.warmup_budget_s,
            manifest_digest=self.manifest_digest,
            log_level=self.log_level,
            pod=self.pod,
        )


def settings_from(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Build the settings.

    Raises:
        SettingsInvalid: something is missing, unknown or out of range.
    """
    given = given_texts(arguments, environ)
    settings = Settings(
        model_name=setting_values.text(given, "model-name"),
        model_dir=setting_values.text(given, "model-dir"),
        model_revision=given["model-revision"],
        revision_hash=given["revision-hash"],
        device=setting_values.one_of(given, "device", ("npu", "cpu")),
        sizes=setting_values.sizes(given["sizes"]),
        steps=setting_values.whole(given, "steps", 2, 200),
        queue_hard_limit=setting_values.whole(given, "queue-hard-limit", 0, 10_000),
        max_wait_s=None if given["max-wait"] == "auto" else setting_values.seconds(given, "max-wait", 86_400),
        dynamic_steps=setting_values.one_of(given, "dynamic-steps", ("off", "on")) == "on",
        jobs_dir=given["jobs-dir"],
        jobs_ttl_s=setting_values.seconds(given, "jobs-ttl", 365 * 86_400),
        jobs_max_open=setting_values.whole(given, "jobs-max-open", 1, 100_000),
        jobs_max_count=setting_values.whole(given, "jobs-max-count", 1, 100_000),
        jobs_max_bytes=setting_values.whole(given, "jobs-max-bytes", 1024, 1024**4),
        host=setting_values.text(given, "host"),
        port=setting_values.whole(given, "port", 1, 65_535),
        probe_port=setting_values.whole(given, "probe-port", 1, 65_535),
        drain_propagation_s=setting_values.seconds(given, "drain-propagation", 600),
        max_body_bytes=setting_values.whole(given, "max-body-bytes", 1024, 1024**3),
        max_pixels=setting_values.whole(given, "max-pixels", 1024, 250_000_000),
        alpha_colour=setting_values.colour(given, "alpha-colour"),
        log_level=setting_values.one_of(given, "log-level", ("debug", "info", "warning", "error")),
        stub_edit_s=setting_values.seconds(given, "stub-edit-seconds", 3600) if given["stub-edit-seconds"] else None,
        stub_load_s=setting_values.seconds(given, "stub-load-seconds", 3600),
        namespace=environ.get("IMAGEEDIT_NAMESPACE", ""),
        deployment=environ.get("IMAGEEDIT_DEPLOYMENT", ""),
        pod=environ.get("IMAGEEDIT_POD", ""),
        pod_uid=environ.get("IMAGEEDIT_POD_UID", ""),
        termination_log=termination_log_path(environ),
        max_references=setting_values.whole(given, "max-references", 1, 4),
        warm_cfg=setting_values.one_of(given, "warm-cfg", ("off", "on")) == "on",
        warmup_budget_s=setting_values.seconds(given, "warmup-budget", 86_400) if given["warmup-budget"] else None,
        start_deadline_s=setting_values.seconds(given, "start-deadline", 86_400),
        manifest_digest=setting_values.digest(given["manifest-digest"]),
        steps_high=setting_values.steps_high(given),
        files_dir=given["files-dir"],
        files_ttl_s=setting_values.seconds(given, "files-ttl", 7 * 86_400),
        files_max_count=setting_values.whole(given, "files-max-count", 1, 100_000),
        files_max_bytes=setting_values.whole(given, "files-max-bytes", 1024, 1024**4),
        api_keys_file=given["api-keys-file"],
        cors_origins=setting_values.origins(given["cors-origins"]),
        stream_heartbeat_s=setting_values.seconds(given, "stream-heartbeat", 3600, lowest=0.1),
        traces=setting_values.traces(environ),
        safety=safety_settings(given),
        page=setting_values.one_of(given, "page", ("on", "off")) == "on",
    )
    if settings.port == settings.probe_port:
        raise SettingsInvalid(
            f"--probe-port {settings.probe_port} is the port of the API too: give them different ports"
        )
    return settings


def termination_log_path(environ: Mapping[str, str]) -> str:
    """Where the reason of a failure goes; known even when the settings are not valid."""
    return environ.get("IMAGEEDIT_TERMINATION_LOG", DEFAULT_TERMINATION_LOG)
