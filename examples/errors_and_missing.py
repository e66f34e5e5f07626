"""
Wrong, swapped and missing samples
==================================

Three kinds of errors in one data set: find them, survive them, and let the number of clusters be chosen.
"""

# %%
# Four clusters in three views, 240 samples. Then six samples are destroyed in the first view, two change places in the
# second, and forty are missing from the third: a row of NaN says so.

import matplotlib.pyplot as plt
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

# %%
# One fit. Missing and ruined samples have neither row nor column in the graph of their view; the other views place
# them.

model = EMVC(n_clusters="auto", random_state=0).fit(views)
print(f"{model.n_clusters_} clusters, accuracy {clustering_scores(labels, model.labels_)['accuracy']:.3f}")

# %%
# The report says what is wrong, and why: a destroyed sample is far from everybody in its view; a swapped one looks
# normal there, but the other views contradict it. Two swapped samples among 240 are little to learn from: theirs are
# the largest errors of the view by far, but not above 0.95, where samples are flagged.

print(model.error_report(n_worst=8))
assert model.n_clusters_ == 4
assert model.outliers_[:6, 0].all()
assert set(np.argsort(model.sample_errors_[:, 1])[-2:]) == {100, 101}

# %%
# The same as a picture: one dot per sample and view, crosses for what was left out.

figure, axes = plt.subplots(3, 1, figsize=(8, 4.5), layout="constrained", sharex=True, sharey=True)
for k, ax in enumerate(axes):
    errors, left_out = model.sample_errors_[:, k], model.outliers_[:, k]
    ax.plot(np.flatnonzero(~left_out), errors[~left_out], ".", ms=4)
    ax.plot(np.flatnonzero(left_out), errors[left_out], "x", color="C3")
    ax.set_ylabel(model.view_names_[k])
axes[2].axvspan(200, 239, color="0.9", label="missing")
axes[2].legend(loc="upper left", frameon=False)
axes[2].set_xlabel("sample")
figure.suptitle("Probability that a row is wrong")
plt.show()
