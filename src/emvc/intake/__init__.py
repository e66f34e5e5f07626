"""Tables as people have them: what their columns are, and how they become numbers."""

from emvc._containers import anndata_views
from emvc.intake._coding import Coding, ColumnRecord, Encoded, Rule
from emvc.intake._frame import encode_frame
from emvc.intake._gather import Gathered, gather
from emvc.intake._text import MISSING

__all__ = [
    "MISSING",
    "Coding",
    "ColumnRecord",
    "Encoded",
    "Gathered",
    "Rule",
    "anndata_views",
    "encode_frame",
    "gather",
]
