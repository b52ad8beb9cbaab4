"""The server's arguments: names, defaults and help, and which texts were given, by argument or environment."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NoReturn

from imageedit_server.errors import SettingsInvalid

ENVIRONMENT_PREFIX = "IMAGEEDIT_"

# argument -> (default, help). None as default: must be given.
# An empty help hides the argument: it is for tests about time and load.
ARGUMENTS: dict[str, tuple[str | None, str]] = {
    "model-name": ("image-edit", "model id that the API serves"),
    "model-dir": (None, "folder of the checkpoint, or 'demo' for the one inside the package"),
    "model-revision": ("", "free text, echoed by /warmz and in answers"),
    "revision-hash": ("", "hash in the Deployment's name, echoed by /warmz and in metrics"),
    "device": ("cpu", "npu or cpu"),
    "sizes": (None, "candidate sizes, such as 768x768,768x576; sides are multiples of 32"),
    "steps": ("16", "denoising steps of an edit"),
    "queue-hard-limit": ("50", "most requests that wait; one more gets 429"),
    "max-wait": ("auto", "longest estimated wait in seconds that is accepted; auto: 10 edits at the first size"),
    "dynamic-steps": ("off", "on: up to --steps-high steps while the queue is short, if the client did not choose"),
    "jobs-dir": ("", "folder for /v1/jobs, kept over restarts; without it there are no jobs"),
    "jobs-ttl": ("86400", "seconds that an ended job and its result are kept"),
    "jobs-max-open": ("500", "most jobs that wait or run; one more gets 429"),
    "jobs-max-count": ("5000", "most jobs that are there, ended ones included; one more gets 429"),
    "jobs-max-bytes": (str(4 * 1024**3), "most bytes of all bodies and results of jobs; one more gets 429"),
    "host": ("0.0.0.0", "address to listen on"),
    "port": ("8000", "port of the API"),
    "probe-port": ("8080", "port of probes, metrics and drain"),
    "drain-propagation": ("5", "seconds in which a draining server still accepts"),
    "max-body-bytes": (str(60 * 1024 * 1024), "largest request body in bytes"),
    "max-pixels": ("50000000", "largest picture in pixels, width times height"),
    "alpha-colour": ("white", "what transparent pictures are laid on: a name of CSS such as white, or #rrggbb"),
    "max-references": ("1", "most pictures of one edit, its own included; each count is warmed"),
    "warm-cfg": ("off", "on: serve negative prompts, which run the model twice a step; warmed too"),
    "warmup-budget": ("", "seconds after which no further kind of edit is warmed; what is not warmed is refused"),
    "start-deadline": ("1800", "seconds in which a worker must be loaded and warm"),
    "manifest-digest": ("", "digest that the checkpoint must have, sha256:..., as `manifest` and /warmz name it"),
    "steps-high": ("", "steps of quality=high, and most steps of an edit (default 24, or --steps if more)"),
    "files-dir": ("", "folder for response_format=url; empty: no files"),
    "files-ttl": ("3600", "seconds that such a file lives"),
    "files-max-count": ("1000", "most files; the oldest makes room"),
    "files-max-bytes": (str(1024**3), "most bytes of all files together; the oldest makes room"),
    "api-keys-file": ("", "file with one API key a line, read again when it changes; empty: no key is needed"),
    "prompt-denylist": ("", "file with words and expressions that refuse a prompt, read again when it changes"),
    "safety-classifier": ("", "folder of an image classifier of transformers that looks at pictures and results"),
    "safety-labels": ("", "labels of the classifier that refuse, such as nsfw,violence"),
    "safety-threshold": ("0.5", "score from which on such a label refuses, above 0 up to 1"),
    "cors-origins": ("", "origins whose pages may call the API, such as https://a.example,https://b.example, or *"),
    "stream-heartbeat": ("10", "most seconds between the signs of life of a stream"),
    "page": ("on", "off: no web page at /"),
    "log-level": ("info", "debug, info, warning or error"),
    "stub-edit-seconds": ("", ""),
    "stub-load-seconds": ("0", ""),
}


def environment_name(argument: str) -> str:
    """`model-dir` -> `IMAGEEDIT_MODEL_DIR`."""
    return ENVIRONMENT_PREFIX + argument.upper().replace("-", "_")


class _Parser(argparse.ArgumentParser):
    """argparse ends the process with code 2 by itself; the contract wants 64 and a reason."""

    def error(self, message: str) -> NoReturn:
        raise SettingsInvalid(f"{message}; --help lists the arguments")


def given_texts(arguments: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The text of every argument; an argument wins over its environment variable, that over the default.

    Raises:
        SettingsInvalid: something is missing, unknown or no text.
    """
    parser = _Parser(
        prog="imageedit-server",
        description="Serves image edits from one accelerator card."
        " Each argument can also be given as IMAGEEDIT_<ARGUMENT>.",
        allow_abbrev=False,
    )
    for name, (default, text) in ARGUMENTS.items():
        shown = f"{text} (default {default})" if default else text
        parser.add_argument(f"--{name}", metavar="VALUE", help=shown if text else argparse.SUPPRESS)
    parsed: dict[str, str | None] = vars(parser.parse_args(list(arguments)))
    given = {}
    for name, (default, _) in ARGUMENTS.items():
        value = parsed[name.replace("-", "_")]
        if value is None:
            value = _from_environment(name, environ)
        if value is None:
            value = default
        if value is None:
            raise SettingsInvalid(f"--{name} is missing; give it, or set {environment_name(name)}")
        given[name] = _text(name, value)
    return given


def _text(name: str, value: str) -> str:
    """The value without the white space around it, which a file that a variable is made of often brings.

    Every setting may end up in an answer, a label or a log line, and these are UTF-8.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SettingsInvalid(f"--{name} {value!a} is not UTF-8 text; write it anew, or rename the file") from None
    text = value.strip()
    if value and not text:
        # Not taken for nothing: a variable that was meant to name a file of keys must not open the API.
        raise SettingsInvalid(f"--{name} is empty but for white space; give a value, or leave it out")
    return text


def _from_environment(name: str, environ: Mapping[str, str]) -> str | None:
    value = environ.get(environment_name(name))
    # Kubernetes injects <SERVICE>_PORT=tcp://10.0.0.1:80 into pods: a Service "imageedit" hits our name.
    if name == "port" and value is not None and value.startswith("tcp://"):
        return None
    return value
