"""
Ten lines
=========

Cluster digits that are described by three views, one of which is partly wrong, and ask what is wrong.
"""

# %%
# Three real views of 500 digits: pixels, Fourier magnitudes and gradient histograms. In a tenth of the samples the
# Fourier view is replaced by random values. Nobody tells the estimator.

import matplotlib.pyplot as plt

from emvc import EMVC, plot
from emvc.datasets import corrupt_samples, make_digits_views
from emvc.metrics import clustering_scores

data = make_digits_views(n_samples=500)
views = dict(zip(data.view_names, data.views, strict=True))
(views["fourier"],), truth = corrupt_samples([views["fourier"]], fraction=0.1, random_state=0)

model = EMVC(n_clusters=10, random_state=0).fit(views)

# %%
# The consensus comes with a certificate: no solution of the problem can lower the objective by a larger share than
# ``duality_gap_``.

print(f"accuracy {clustering_scores(data.labels, model.labels_)['accuracy']:.3f}")
print(f"within {model.duality_gap_:.1e} of the optimum")

# %%
# Which view is worst, and which samples? Rows are flagged that are ruined, or wrong with a probability above 0.95.

for name, flagged in zip(model.view_names_, model.outliers_.mean(axis=0), strict=True):
    print(f"view {name}: {flagged:.0%} of its samples are flagged")
worst = model.sample_errors_[:, 1].argsort()[::-1][: truth.sum()]
print(f"{truth[worst, 0].sum()} of the {truth.sum()} destroyed samples are among the {truth.sum()} largest errors")

# %%
# `emvc.plot` draws the same: the samples in the plane, and how many have at least a given error, by view.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.embedding(model, left)
plot.errors(model, right)
plt.show()
