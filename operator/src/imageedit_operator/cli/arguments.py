"""What can be asked: the commands, their flags, and help with examples."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

PROGRAM = "kubectl imageedit"

EXITS = """exit codes:
  0 done, and ready   1 refused or failed   2 wrong usage, or no login
  3 not found         4 not ready now, try again later"""

EXAMPLES = {
    "": """
  kubectl imageedit status                      every service of the namespace
  kubectl imageedit plan -f qwen-edit.yaml      what applying the file would do
  kubectl imageedit rollback qwen-edit          back to the last good revision""",
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
    "restart": """
  kubectl imageedit restart qwen-edit""",
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command and its values; argparse ends the program with 2 where they are wrong."""
    asked = parser().parse_args(list(arguments))
    asked.json = asked.output == "json"
    return asked


def parser() -> argparse.ArgumentParser:
    """All commands."""
    words = "Look at image editing services, plan, hold and undo their changes."
    whole = argparse.ArgumentParser(
        prog=PROGRAM,
        description=words,
        epilog=_epilog(""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _looking(commands)
    _changing(commands)
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
        "Without --to: the last good revision, or the one before. Shows what to commit to a repository.",
    )
    _name(rollback)
    rollback.add_argument("--to", default="", metavar="REVISION", help="hash, its beginning, or a spec.model.revision")
    _name(_command(commands, "pause", "Replace no pod until resume: writes spec.rollout.paused."))
    _name(_command(commands, "resume", "Replace pods again: writes spec.rollout.paused."))
    _name(_command(commands, "restart", "Replace every pod by one of the same spec: writes an annotation."))


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    short: str,
    more: str = "",
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
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="what to print (default text)")
    return made


def _name(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME", help="the resource")


def _epilog(name: str) -> str:
    return f"examples:{EXAMPLES[name]}\n\n{EXITS}"
