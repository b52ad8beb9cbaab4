"""`imageedit-server manifest DIR`: hash a checkpoint and write the list beside it."""

import argparse
import sys
from collections.abc import Sequence

from imageedit_server.engine.checkpoint import check_checkpoint, resolve_model_dir
from imageedit_server.engine.manifest import write_manifest
from imageedit_server.errors import exit_code
from imageedit_server.worker.failures import WorkerError


def run(arguments: Sequence[str]) -> int:
    """Print the digest and return 0, or say what keeps the folder from being a checkpoint and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="imageedit-server manifest",
        description="Writes imageedit-manifest.json into a checkpoint's folder. A server that finds it there refuses"
        " to load anything else than these files; give the digest that is printed as --manifest-digest to refuse"
        " another manifest, too.",
    )
    parser.add_argument("dir", metavar="DIR", help="folder of the checkpoint")
    folder = resolve_model_dir(parser.parse_args(list(arguments)).dir)
    try:
        check_checkpoint(folder)
        print(write_manifest(folder))
    except WorkerError as error:
        print(f"{error.failure.reason}: {error.failure.message}", file=sys.stderr)
        return exit_code(error.failure.reason)
    except OSError as error:
        print(f"{folder} cannot be read or written: {error}", file=sys.stderr)
        return 1
    return 0
