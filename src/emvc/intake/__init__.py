"""Tables as people have them: what their columns are, and how they become numbers."""

from emvc.intake._coding import Coding, ColumnRecord, Encoded
from emvc.intake._frame import encode_frame
from emvc.intake._text import MISSING

__all__ = ["MISSING", "Coding", "ColumnRecord", "Encoded", "encode_frame"]
