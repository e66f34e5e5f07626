"""What sets clusters apart: markers among the features, and annotations that were not used for clustering.

>>> import emvc
>>> from emvc import EMVC
>>> from emvc.datasets import make_digits_views
>>> data = make_digits_views(n_samples=150)
>>> model = EMVC(10, random_state=0).fit(data.views)
>>> found = emvc.explain(model, data.views, {"digit": data.labels})
>>> found.annotations[["column", "test"]].values.tolist()
[['digit', 'chi-square, shuffled']]
"""

from emvc.explanation.build import explain
from emvc.explanation.result import Explanation

__all__ = ["Explanation", "explain"]
