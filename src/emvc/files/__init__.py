"""Views from files: read, check, and join on the ids of the samples."""

from emvc.files._base import FileView
from emvc.files._read import FORMATS, JoinedViews, join, read_file, read_views

__all__ = ["FORMATS", "FileView", "JoinedViews", "join", "read_file", "read_views"]
