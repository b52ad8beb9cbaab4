"""What can be asked: the commands, their flags, and help with examples."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

PROGRAM = "kubectl imageedit"

EXITS = """exit codes:
  0 done, and ready   1 refused or failed   2 wrong usage, or no login
  3 not found         4 not ready now, try again later"""

EXAMPLES = {
    "": """
  kubectl imageedit status                      every service of the namespace
  kubectl imageedit plan -f qwen-edit.yaml      what applying the file would do
  kubectl imageedit rollback qwen-edit          back to the last good revision
  kubectl imageedit edit in.png "make the background blue" -o out.png""",
    "status": """
  kubectl imageedit status                      every service of the namespace
  kubectl imageedit status qwen-edit -n shop    one of them
  kubectl imageedit status -A -o json | jq '.items[] | select(.ready | not) | .name'
  until kubectl imageedit status qwen-edit > /dev/null; do sleep 5; done""",
    "history": """
  kubectl imageedit history qwen-edit
  kubectl imageedit history qwen-edit -o json | jq -r '.revisions[].hash'""",
    "plan": """
  kubectl imageedit plan -f qwen-edit.yaml
  helm template shop | kubectl imageedit plan -f - -n shop""",
    "rollback": """
  kubectl imageedit rollback qwen-edit                  to the last good revision
  kubectl imageedit rollback qwen-edit --to 44e4        to the one whose hash begins so
  kubectl imageedit rollback qwen-edit --to 2026-11-a   to the one of this model revision""",
    "pause": """
  kubectl imageedit pause qwen-edit""",
    "resume": """
  kubectl imageedit resume qwen-edit""",
    "promote": """
  kubectl imageedit promote qwen-edit""",
    "restart": """
  kubectl imageedit restart qwen-edit""",
    "edit": """
  kubectl imageedit edit in.png "make the background blue" -o out.png
  kubectl imageedit edit in.png "add a hat" --service qwen-edit -n shop --seed 7
  kubectl imageedit edit in.png "add a hat" --url http://127.0.0.1:8000 --api-key-file key.txt""",
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command and its values; argparse ends the program with 2 where they are wrong."""
    whole = parser()
    asked = whole.parse_args(list(arguments))
    if asked.command == "edit":
        formats = [value for value in asked.output if value in ("json", "text")]
        files = [value for value in asked.output if value not in ("json", "text")]
        if len(files) > 1:
            whole.error("edit writes one picture: give -o OUT once")
        asked.json, asked.out = "json" in formats, Path(files[0]) if files else None
    else:
        if asked.command == "status" and asked.name and asked.all_namespaces:
            whole.error("status takes a NAME or -A, not both")
        asked.json = asked.output == "json"
    return asked


def parser() -> argparse.ArgumentParser:
    """All commands."""
    words = "Look at image editing services, plan and undo their changes, and edit pictures with them."
    whole = argparse.ArgumentParser(
        prog=PROGRAM,
        description=words,
        epilog=_epilog(""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _looking(commands)
    _changing(commands)
    _edit(commands)
    return whole


def _looking(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    status = _command(
        commands,
        "status",
        "Show which revision serves, which one comes, and what it waits for.",
        "Exit code 4 where a resource is not ready.",
    )
    status.add_argument("name", nargs="?", default="", metavar="NAME", help="the resource; without it all are shown")
    status.add_argument("-A", "--all-namespaces", action="store_true", help="those of all namespaces")
    history = _command(commands, "history", "List the revisions that are kept, and what changed in each.")
    _name(history)
    plan = _command(
        commands,
        "plan",
        "Show what applying a file would do; nothing is stored.",
        "The API server checks the file, and the operator's own decisions are run on what the cluster holds now.",
    )
    plan.add_argument("-f", "--filename", required=True, metavar="FILE", help="file with resources; - is stdin")


def _changing(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rollback = _command(
        commands,
        "rollback",
        "Put model, server and accelerator of an earlier revision back into the spec.",
        "Without --to: the last good revision, or the one complete before. Shows what to commit to a repository.",
    )
    _name(rollback)
    rollback.add_argument("--to", default="", metavar="REVISION", help="hash, its beginning, or a spec.model.revision")
    _name(_command(commands, "pause", "Replace no pod until resume: writes spec.rollout.paused."))
    _name(_command(commands, "resume", "Replace pods again: writes spec.rollout.paused."))
    promote = _command(
        commands,
        "promote",
        "Go on with a rollout that holds at its canary: writes an annotation.",
        "It promotes the revision that the spec asks for now, and no later one.",
    )
    _name(promote)
    _name(_command(commands, "restart", "Replace every pod by one of the same spec: writes an annotation."))


def _edit(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    edit = _command(
        commands,
        "edit",
        "Edit a picture with a service of the cluster.",
        "The picture goes through the API server to the Service, or straight to --url.",
        outputs=False,
    )
    add = edit.add_argument
    add("image", type=Path, metavar="IMAGE", help="a PNG, JPEG or WebP file")
    add("prompt", metavar="PROMPT", help="what to change")
    add(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="OUT",
        help="file for the result (default: IMAGE-edited.png); json prints what made it as a document",
    )
    add("--force", action="store_true", help="write over OUT where it exists")
    add("--service", default="", metavar="NAME", help="the resource; not needed where the namespace has one only")
    add("--url", default="", help="go straight to the API at this address, without a cluster")
    add("--api-key-file", type=Path, metavar="FILE", help="file whose first line is the API key; needs --url")
    add("--size", default="", help="auto, original or WIDTHxHEIGHT (default: the service's)")
    add("--seed", type=int, help="the same seed gives the same result")
    add("--steps", type=int, help="denoising steps (default: the service's)")
    add("--timeout", type=_seconds, default=600.0, metavar="SECONDS", help="give up after so long (default 600)")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    short: str,
    more: str = "",
    *,
    outputs: bool = True,
) -> argparse.ArgumentParser:
    made = commands.add_parser(
        name,
        help=short[0].lower() + short[1:].rstrip("."),
        description=f"{short} {more}".strip(),
        epilog=_epilog(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("-n", "--namespace", default="", help="namespace (default: that of the context)")
    made.add_argument("--context", default="", help="context of the kubeconfig")
    made.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="kubeconfig (default: KUBECONFIG, ~/.kube/config)"
    )
    if outputs:
        choices = ("text", "json")
        made.add_argument("-o", "--output", choices=choices, default="text", help="what to print (default text)")
    return made


def _name(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME", help="the resource")


def _epilog(name: str) -> str:
    return f"examples:{EXAMPLES[name]}\n\n{EXITS}"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to 86400")
    return seconds
