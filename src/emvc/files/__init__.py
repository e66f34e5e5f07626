"""Views from files: read, check, and join on the ids of the samples."""

from emvc.files._base import FileView, ReadOptions
from emvc.files._join import JoinedViews, join
from emvc.files._read import FORMATS, read_file, read_views

__all__ = ["FORMATS", "FileView", "JoinedViews", "ReadOptions", "join", "read_file", "read_views"]
