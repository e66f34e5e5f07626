"""Containers: no home, nothing to write to but the output, any user, nobody to ask."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import emvc
from emvc.kernels import _compile

SOURCE = Path(emvc.__file__).parents[1]

CONTAINER = """
set -e
bind=$(mktemp -d)
mkdir "$bind/python" "$bind/place"
mount --make-rprivate /
mount -t tmpfs -o mode=777 none "$bind/place"
for name in a b; do cp "$1/$name.csv" "$bind/place"; done
chmod 644 "$bind/place"/*.csv
# The interpreter may lie in the home of root, where nobody else may look.
if [ -n "$5" ]; then
  mount --bind "$5" "$bind/python"
  mount -t tmpfs -o mode=755 none "$6"
  mkdir -p "$5"
  mount --bind "$bind/python" "$5"
fi
chmod 755 "$bind"
[ "$2" = with-tmp ] && mount -t tmpfs -o mode=1777 none /var/tmp
mount -o remount,bind,ro /
cd "$bind/place"
! touch /x 2> /dev/null
exec "$3" -c "$4" "$bind/place"
"""

COMMAND = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "TMPDIR"):
    os.environ.pop(name, None)
os.environ["HOME"] = "/nonexistent"
os.chdir("/")
place = sys.argv[1]
from emvc.cli import main
try:
    main(["cluster", f"{place}/a.csv", f"{place}/b.csv", "-k", "3", "-o", f"{place}/out", "--jobs", "1", "--no-assess"])
except SystemExit as end:
    print("exit", end.code, sorted(os.listdir(f"{place}/out")), os.getuid(), len(os.listdir(place)))
"""


def namespaces():
    allowed = sys.platform == "linux" and os.getuid() == 0
    return allowed and subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("place", ["without-tmp"])  # by hand, "with-tmp" works as well
def test_a_read_only_container_without_a_home_and_user_65534(place, tmp_path):
    if not namespaces():
        pytest.skip("needs root and name spaces")
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 20)
    for name in "ab":
        view = 5 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((60, 4))
        np.savetxt(tmp_path / f"{name}.csv", view, delimiter=",")
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["unshare", "-m", "sh", "-c", CONTAINER, "sh", str(tmp_path), place, sys.executable, COMMAND]
    command += [sys.base_prefix if Path(sys.base_prefix).is_relative_to(Path.home()) else "", str(Path.home())]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    files = ["labels.csv", "markers.csv", "methods.txt", "model.emvc", "report.html"]
    assert done.stdout.splitlines()[-1:] == [f"exit 0 {files} 65534 3"], done.stderr
    assert "Traceback" not in done.stderr


def double(x):
    return 2 * x


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No place for a cache that numba finds by itself."""
    real = numba.njit

    def refuse(*, cache=False, **options):
        if cache and not numba.config.CACHE_DIR:
            raise RuntimeError("cannot cache function 'double': no locator available for file")
        return real(**options)

    monkeypatch.setattr(_compile, "numba", SimpleNamespace(njit=refuse, config=numba.config))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_temporary_cache_is_private(nowhere):
    assert _compile.njit(cache=True)(double)(3) == 6
    (folder,) = nowhere.iterdir()
    assert str(folder) == numba.config.CACHE_DIR
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="rights are those of POSIX")
def test_a_folder_that_others_could_fill_is_not_used(nowhere):
    known = nowhere / f"emvc-compiled-{os.getuid()}"
    known.mkdir(mode=0o777)
    known.chmod(0o777)
    assert _compile.njit(cache=True)(double)(3) == 6
    assert str(known) != numba.config.CACHE_DIR
    assert list(known.iterdir()) == []


def test_without_any_place_there_is_no_cache(nowhere, monkeypatch):
    monkeypatch.chdir(nowhere)  # what `tempfile` names when nothing else can be written
    assert _compile.njit(cache=True)(double)(3) == 6
    assert list(nowhere.iterdir()) == []
    assert not numba.config.CACHE_DIR
