import re
import subprocess
import sys

import pytest

import emvc
from emvc import cli, report


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    return stopped.value.code, capsys.readouterr()


def test_version(capsys):
    code, shown = run(capsys, "--version")
    assert code == 0
    assert shown.out.strip() == f"emvc {emvc.__version__}"


def test_python_runs_the_command_as_well():
    done = subprocess.run([sys.executable, "-m", "emvc", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == f"emvc {emvc.__version__}"


def test_help_names_the_commands(capsys):
    code, shown = run(capsys, "--help")
    assert code == 0
    assert "demo" in shown.out


def test_demo_writes_a_report_and_pictures(capsys, tmp_path):
    code, shown = run(capsys, "demo", "--output", str(tmp_path / "out"), "--samples", "300")
    assert code == 0
    assert "k-means on joined features" in shown.out
    assert "kernel addition" in shown.out
    assert "mean of EMVC's graphs" in shown.out
    assert re.search(r"EMVC is certified: no solution can lower its\s+objective by more than 0\.\d\d%", shown.out)
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"report.html", "embedding.png", "consensus.png", "errors.png", "convergence.png"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "mean of EMVC&#x27;s graphs" in page
    assert "://" not in page  # nothing is fetched from anywhere
    for name in ("embedding", "consensus", "errors", "convergence"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_unwritable_output_is_one_line(capsys, tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, shown = run(capsys, "demo", "--output", str(tmp_path / "file"), "--samples", "60")
    assert code == 1
    assert shown.err.splitlines()[-1].startswith("error:")
    assert "Traceback" not in shown.err


def test_ctrl_c_leaves_a_clean_message(capsys, monkeypatch, tmp_path):
    def interrupt(**_):
        raise KeyboardInterrupt("EMVC was interrupted after about 10 iterations; nothing was fitted.")

    monkeypatch.setattr("emvc.demo.run_demo", interrupt)
    code, shown = run(capsys, "demo", "--output", str(tmp_path / "out"))
    assert code == 130
    assert "Interrupted." in shown.err
    assert "Traceback" not in shown.err
    assert not (tmp_path / "out").exists()


def test_datasets_are_listed_with_their_state(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("EMVC_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "webkb.mat").write_bytes(b"not it")
    code, shown = run(capsys, "datasets")
    assert code == 0
    assert re.search(r"webkb .* 1051 .* damaged", shown.out)
    assert re.search(r"handwritten .* no", shown.out)
    assert re.search(r"fox .* supplied", shown.out)


def test_unknown_data_set_is_one_line(capsys):
    code, shown = run(capsys, "datasets", "fetch", "mnist")
    assert code == 1
    assert shown.err.startswith("error: Unknown data set 'mnist'")


def test_unknown_command_is_refused():
    result = subprocess.run(
        [sys.executable, "-c", "from emvc.cli import main; main(['nonsense'])"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "nonsense" in result.stderr


def test_files_appear_whole_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("old")

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space left"):
        report.write_files(tmp_path, {"a.txt": b"new"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"
