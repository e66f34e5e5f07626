"""
What sets the clusters apart
============================

Clusters without reasons are of little use. Which features make them, how sure can one be of that, and what do the
clusters have to do with things that are known about the samples?
"""

# %%
# 178 wines from three cultivars: seven measurements of a general kind are one view, six of phenols and colour another.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import emvc
from emvc import EMVC, plot

wine = load_wine(as_frame=True)
phenols = ["total_phenols", "flavanoids", "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue"]
views = {"general": wine.data.drop(columns=phenols), "phenols": wine.data[phenols]}
model = EMVC(n_clusters=3, random_state=0).fit(views)

# %%
# The cultivar was not used for clustering: it is an annotation. A second one is drawn at random. With ``split=True``
# the features of each view are tested against clusters that the *other* view finds, so p-values hold although the
# features were used.

rng = np.random.default_rng(0)
known = pd.DataFrame(
    {"cultivar": np.array(["A", "B", "C"])[wine.target], "shelf": rng.integers(1, 4, len(wine.target))}
)
explanation = emvc.explain(model, views, known, split=True)
print(explanation)

# %%
# Rows are ordered by cluster, with the largest effects first. An effect of -0.9 says: of 100 pairs of a wine of the
# cluster and another wine, the first has the smaller value in 95.

print(explanation.markers.groupby("cluster").head(3)[["cluster", "feature", "direction", "effect", "fdr"]])

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot.markers(explanation, left, n=4)
plot.annotations(explanation, right, column="cultivar")
plt.show()

# %%
# The same views with their rows shuffled have nothing to do with each other any more. Clusters can still be asked for,
# and one by one the features still differ between them; the other view knows nothing of that.

shuffled = {
    name: view.sample(frac=1, random_state=k, ignore_index=True) for k, (name, view) in enumerate(views.items())
}
model = EMVC(n_clusters=3, random_state=0).fit(shuffled)
for split in (False, True):
    found = emvc.explain(model, shuffled, split=split).markers
    print(f"split={split}: {(found.fdr < 0.05).sum()} of {len(found)} comparisons are significant")
