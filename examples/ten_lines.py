"""Cluster digits seen in three views, and look at what the views get wrong."""

from emvc import EMVC
from emvc.datasets import corrupt_samples, make_digits_views
from emvc.metrics import clustering_scores

data = make_digits_views(n_samples=500)
views = dict(zip(data.view_names, data.views, strict=True))
(views["fourier"],), truth = corrupt_samples([views["fourier"]], fraction=0.1, random_state=0)

model = EMVC(n_clusters=10, random_state=0).fit(views)

print(f"accuracy {clustering_scores(data.labels, model.labels_)['accuracy']:.3f}")
print(f"within {model.duality_gap_:.1e} of the optimum")
for name, error in zip(model.view_names_, model.view_errors_, strict=True):
    print(f"view {name}: the others do not confirm {error:.0%} of its transitions")
worst = model.sample_errors_[:, 1].argsort()[::-1][: truth.sum()]
print(f"{truth[worst, 0].sum()} of the {truth.sum()} destroyed samples are among the {truth.sum()} largest errors")
