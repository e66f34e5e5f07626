"""
Web pages by their words and by the links to them
=================================================

1,051 pages of computer science departments. Some are pages of courses, all others are not. Words of a page are one
view, words of the links that lead to it the other. (A. Blum and T. Mitchell, COLT 1998.)
"""

# %%
# ``emvc datasets fetch webkb`` downloads the data from their public source and checks them.

import matplotlib.pyplot as plt
import numpy as np

import emvc
from emvc import EMVC, plot
from emvc.datasets import load

data = load("webkb", download=False)
views = dict(zip(data.view_names, data.views, strict=True))
print({name: view.shape for name, view in views.items()})

# %%
# Both views are counts, mostly zeros: rows are scaled to length one by themselves. Five pages have no word at all in
# each view.

model = EMVC(n_clusters=2, random_state=0).fit(views)
kind = np.where(data.labels == 0, "course", "other")
explanation = emvc.explain(model, views, {"kind": kind}, split=True)
print(explanation)

# %%
# The words (columns) with the largest effects: those of the page are tested against the clusters that the links find,
# and the other way round. An effect of 0.5 says that a page of the cluster has more of the word than a page outside in
# three of four pairs, ties shared.

table = explanation.markers.query("fdr < 0.05")
print(table.groupby(["cluster", "view"]).head(4)[["cluster", "view", "feature", "direction", "effect", "fdr"]])

# %%
# On which pages are the clusters and the known kind at odds? There the two views contradict each other more often: the
# error is the probability that a row is wrong, or its page an odd one.

names = np.array(explanation.names())
right = names[model.labels_] == kind
error = np.nanmax(model.sample_errors_, axis=1)
print(
    f"mean error: {error[right].mean():.2f} of {right.sum()} pages, {error[~right].mean():.2f} of the "
    f"{(~right).sum()} others"
)

figure, (left, middle) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot.embedding(model, left)
plot.annotations(explanation, middle, column="kind")
plt.show()
