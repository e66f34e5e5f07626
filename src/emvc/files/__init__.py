"""Views from files: read, check, and join on the ids of the samples."""

from emvc.files._base import FileView, ReadOptions
from emvc.files._check import Check, ViewProfile, check, column_notes
from emvc.files._config import Config, as_config, read_config
from emvc.files._join import JoinedViews, join
from emvc.files._read import FORMATS, read_file, read_views

__all__ = [
    "FORMATS",
    "Check",
    "Config",
    "FileView",
    "JoinedViews",
    "ReadOptions",
    "ViewProfile",
    "as_config",
    "check",
    "column_notes",
    "join",
    "read_config",
    "read_file",
    "read_views",
]
