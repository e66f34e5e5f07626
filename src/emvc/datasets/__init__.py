"""Multi-view data: real sets, synthetic sets, and errors to inject into them."""

from emvc.datasets._base import MultiViewDataset
from emvc.datasets.digits import make_digits_views
from emvc.datasets.errors import add_noise, corrupt_entries, corrupt_samples, mismatch_samples
from emvc.datasets.real import DatasetNotFoundError, available, fetch, load
from emvc.datasets.synthetic import make_paper_synthetic

__all__ = [
    "DatasetNotFoundError",
    "MultiViewDataset",
    "add_noise",
    "available",
    "corrupt_entries",
    "corrupt_samples",
    "fetch",
    "load",
    "make_digits_views",
    "make_paper_synthetic",
    "mismatch_samples",
]
