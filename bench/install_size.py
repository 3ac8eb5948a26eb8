"""What a plain installation takes on disk: a fresh environment, the package with its dependencies, megabytes.

Run `python -m bench.install_size`. Needs the network, or a local index; takes about a minute. Aim: 120 MB
without pip and setuptools.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AIM_MB = 120.0
NOT_OURS = ("pip", "setuptools", "_distutils_hack", "distutils-precedence", "pkg_resources")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)]
        subprocess.run(pip, check=True)
        (site,) = Path(folder).rglob("site-packages")
        sizes: Counter[str] = Counter()
        for file in site.rglob("*"):
            top = file.relative_to(site).parts[0]
            if file.is_file() and not top.startswith(NOT_OURS):
                sizes[top.partition("-")[0].removesuffix(".libs")] += file.stat().st_size
    for name, size in sizes.most_common(12):
        print(f"{name:<28}{size / 1e6:>8.1f} MB")
    total = sum(sizes.values()) / 1e6
    print(f"{'in all':<28}{total:>8.1f} MB  (aim {AIM_MB:.0f} MB, {AIM_MB / total:.2f}x)")


if __name__ == "__main__":
    main()
