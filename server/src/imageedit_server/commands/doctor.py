"""`imageedit-server doctor`: look at everything a server needs, and say what to change."""

import argparse
import json
import os
from collections.abc import Sequence

from imageedit_server.doctor.findings import Finding, Level
from imageedit_server.doctor.gather import gather
from imageedit_server.doctor.rules import examine


def run(arguments: Sequence[str]) -> int:
    """Print the report; return 1 if something in it keeps a server from working, else 0."""
    parser = argparse.ArgumentParser(
        prog="imageedit-server doctor",
        description="Looks at Python, libraries, driver, CANN, cards, memory and folders, and tries the device.",
    )
    parser.add_argument("--device", choices=("npu", "cpu"), default=os.environ.get("IMAGEEDIT_DEVICE", "cpu"))
    parser.add_argument("--model-dir", default=os.environ.get("IMAGEEDIT_MODEL_DIR"), help="check this folder, too")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    asked = parser.parse_args(list(arguments))
    findings = examine(gather(device=asked.device, model_dir=asked.model_dir, environ=os.environ))
    print(as_json(findings) if asked.output == "json" else as_text(findings))
    return 0 if healthy(findings) else 1


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether a server would work."""
    return all(finding.level is not Level.FAIL for finding in findings)


def as_text(findings: Sequence[Finding]) -> str:
    """One line for each finding, in columns."""
    width = max(len(finding.name) for finding in findings)
    return "\n".join(f"{finding.level.value:<4}  {finding.name:<{width}}  {finding.message}" for finding in findings)


def as_json(findings: Sequence[Finding]) -> str:
    """`{"ok": ..., "findings": [{"name", "level", "message"}]}`."""
    listed = [{"name": finding.name, "level": finding.level.value, "message": finding.message} for finding in findings]
    return json.dumps({"ok": healthy(findings), "findings": listed}, indent=1)
