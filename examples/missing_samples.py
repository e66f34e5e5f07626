"""
Samples that some views do not have
===================================

Not every patient has every test, not every article a picture. A row of NaN says that a view does not have a sample.
What is lost, and what do the usual ways out cost?
"""

# %%
# A growing share of 300 digits loses one of its three views, at random. EMVC takes the rows of NaN as they are; the
# baseline needs complete views, so the gaps are filled with the mean of each feature.

import matplotlib.pyplot as plt
import numpy as np

from emvc import EMVC, KernelAddition
from emvc.datasets import make_digits_views
from emvc.metrics import clustering_scores

data = make_digits_views(n_samples=300)
rng = np.random.default_rng(0)


def without(share):
    """Return copies of the views in which a share of the samples is missing from one view each."""
    views = [view.copy() for view in data.views]
    for sample in rng.choice(300, round(300 * share), replace=False):
        views[rng.integers(3)][sample] = np.nan
    return views


def filled(views):
    """Return the views with the mean of each feature where a sample is missing."""
    return [np.where(np.isnan(view), np.nanmean(view, axis=0), view) for view in views]


shares = (0.0, 0.25, 0.5, 0.75)
scores = {"EMVC, gaps as they are": [], "EMVC, means filled in": [], "KernelAddition, means filled in": []}
for share in shares:
    views = without(share)
    results = (
        EMVC(10, random_state=0).fit_predict(views),
        EMVC(10, random_state=0, screen=False).fit_predict(filled(views)),
        KernelAddition(10, random_state=0).fit_predict(filled(views)),
    )
    for row, labels in zip(scores.values(), results, strict=True):
        row.append(clustering_scores(data.labels, labels)["nmi"])

# %%
# An invented value is an error that looks like data. Leaving the gap open costs little as long as the other views know
# the sample.

for name, row in scores.items():
    print(f"{name:32} " + "  ".join(f"{value:.2f}" for value in row))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, row in scores.items():
    ax.plot(shares, row, "o-", label=name)
ax.set(xlabel="share of samples that lack one view", ylabel="NMI", title="300 digits, three views", ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
