"""Progress bar of a download, in the form that pooch expects."""

from __future__ import annotations


class DownloadProgress:
    """Show the progress of one file on standard error.

    Parameters
    ----------
    name : str
        Name of the file.
    """

    def __init__(self, name: str) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        from emvc._terminal import Console

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task(name, total=None)
        self._total = 0
        self._bar.start()

    @property
    def total(self) -> int:
        """Size of the file, set by pooch."""
        return self._total

    @total.setter
    def total(self, value: int) -> None:
        self._total = value
        self._bar.update(self._task, total=value or None)

    def update(self, amount: int) -> None:
        """Add a number of bytes."""
        self._bar.update(self._task, advance=amount)

    def reset(self) -> None:
        """Start from zero; pooch does this before it marks the file as complete."""
        self._bar.update(self._task, completed=0)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._bar.stop()
