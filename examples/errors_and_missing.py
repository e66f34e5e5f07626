"""Wrong, swapped and missing samples: find them, survive them, and let the number of clusters be chosen."""

import numpy as np

from emvc import EMVC
from emvc.metrics import clustering_scores

rng = np.random.default_rng(0)
labels = np.arange(240) % 4
names = ("text", "image", "sound")
views = {name: 4 * rng.standard_normal((4, 12))[labels] + rng.standard_normal((240, 12)) for name in names}

views["text"][:6] = rng.uniform(-30, 30, (6, 12))  # destroyed
views["image"][[100, 101]] = views["image"][[101, 100]]  # swapped
views["sound"][200:] = np.nan  # missing

model = EMVC(n_clusters="auto", random_state=0).fit(views)
print(f"{model.n_clusters_} clusters, accuracy {clustering_scores(labels, model.labels_)['accuracy']:.3f}")
print(model.error_report(n_worst=8))
assert model.n_clusters_ == 4
assert model.outliers_[:6, 0].all()
assert model.outliers_[[100, 101], 1].all()
