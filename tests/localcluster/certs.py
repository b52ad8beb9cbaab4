"""One certificate authority a cluster, and what it signs, made by the openssl program (EC keys: milliseconds each)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from localcluster.errors import LocalClusterError
from localcluster.hosttools import program

DAYS = "3650"


def openssl(*args: str) -> None:
    """Run openssl; raises LocalClusterError with its last line."""
    done = subprocess.run([program("openssl"), *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"openssl {args[0]} failed: {done.stderr.strip().splitlines()[-1:]}")


def key(file: Path) -> None:
    """A private key on the P-256 curve, readable by its owner only."""
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(file))
    file.chmod(0o600)


def make_authority(certs: Path) -> None:
    """`ca.key` and `ca.crt`, and the pair `sa.key`, `sa.pub` that signs and checks service account tokens."""
    key(certs / "ca.key")
    openssl(
        *("req", "-x509", "-new", "-key", str(certs / "ca.key"), "-days", DAYS, "-subj", "/CN=imageedit-local-ca"),
        *("-addext", "keyUsage=critical,keyCertSign,digitalSignature", "-out", str(certs / "ca.crt")),
    )
    key(certs / "sa.key")
    openssl("pkey", "-in", str(certs / "sa.key"), "-pubout", "-out", str(certs / "sa.pub"))


def sign(
    certs: Path,
    name: str,
    *,
    user: str,
    groups: Sequence[str] = (),
    addresses: Sequence[str] = (),
    names: Sequence[str] = (),
) -> None:
    """`<name>.key` and `<name>.crt` for a user in groups (client) that may also serve at addresses and names."""
    key(certs / f"{name}.key")
    subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
    alternatives = [f"IP:{address}" for address in addresses] + [f"DNS:{name}" for name in names]
    extensions = ["keyUsage=critical,digitalSignature", "extendedKeyUsage=clientAuth,serverAuth"]
    if alternatives:
        extensions.append("subjectAltName=" + ",".join(alternatives))
    extension_file = certs / f"{name}.ext"
    extension_file.write_text("\n".join(extensions) + "\n")
    request = certs / f"{name}.csr"
    openssl("req", "-new", "-key", str(certs / f"{name}.key"), "-subj", subject, "-out", str(request))
    openssl(
        *("x509", "-req", "-in", str(request), "-CA", str(certs / "ca.crt"), "-CAkey", str(certs / "ca.key")),
        *("-CAcreateserial", "-days", DAYS, "-extfile", str(extension_file), "-out", str(certs / f"{name}.crt")),
    )
