"""
Finding the view that does not belong
=====================================

A view may say nothing about the clusters, or answer another question. Which one is it, and does it do harm?
"""

# %%
# Three views of 300 digits, and a fourth: once white noise, once ten clear groups that have nothing to do with the
# digits (the pen that was used, say).

import matplotlib.pyplot as plt
import numpy as np

from emvc import AMGL, EMVC, CoRegularized, FeatureConcatenation, KernelAddition
from emvc.datasets import make_digits_views
from emvc.metrics import clustering_scores

data = make_digits_views(n_samples=300)
good = dict(zip(data.view_names, data.views, strict=True))

rng = np.random.default_rng(0)
pens = rng.integers(10, size=300)
cases = {
    "three good views": good,
    "and white noise": good | {"noise": rng.standard_normal((300, 20))},
    "and other groups": good | {"pen": 3 * rng.standard_normal((10, 20))[pens] + rng.standard_normal((300, 20))},
}
models = {case: EMVC(n_clusters=10, random_state=0).fit(views) for case, views in cases.items()}

# %%
# ``view_errors_`` is the share of its samples that a view is wrong about, by comparison with the others,
# ``view_weights_`` its share in the consensus. Both point to the same view, without a label. The errors are a cautious
# bound: views are presumed right.

print(models["and white noise"].error_report(n_worst=2))
print()
print(models["and other groups"].error_report(n_worst=2))
for case, culprit in (("and white noise", "noise"), ("and other groups", "pen")):
    assert models[case].view_names_[int(models[case].view_errors_.argmax())] == culprit
    assert models[case].view_names_[int(models[case].view_weights_.argmin())] == culprit

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for ax, case in zip(axes, ("and white noise", "and other groups"), strict=True):
    model = models[case]
    rows = np.arange(len(model.view_names_))
    ax.barh(rows - 0.2, model.view_errors_, 0.4, label="error")
    ax.barh(rows + 0.2, model.view_weights_ / model.view_weights_.max(), 0.4, label="weight, relative to the best")
    ax.set(title=case, yticks=rows, yticklabels=model.view_names_, xlim=(0, 1.05))
axes[0].legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
plt.show()

# %%
# Does it matter? White noise costs little: it moves all distances alike. Groups of another kind are what hurts methods
# that give all views the same say.

print(f"{'NMI':20}" + "".join(f"{case:>18}" for case in cases))
for method in (EMVC, CoRegularized, AMGL, KernelAddition, FeatureConcatenation):
    row = [method(10, random_state=0).fit_predict(views) for views in cases.values()]
    print(f"{method.__name__:20}" + "".join(f"{clustering_scores(data.labels, labels)['nmi']:18.2f}" for labels in row))

# %%
# The outvoted view is not worthless: here it knows the pen. Cluster it alone if that is of interest. And a majority is
# needed; with two views that contradict each other nobody can say which of them is right.
