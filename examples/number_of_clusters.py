"""
How many clusters?
==================

``n_clusters="auto"`` tries 2 to 120 and takes the number with the best score. `emvc.select` shows the evidence, so
that you can disagree.
"""

# %%
# Six groups in three views; each view alone confuses two of them.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

import emvc
from emvc.datasets import make_digits_views

rng = np.random.default_rng(1)
labels = np.arange(240) % 6
views = []
for confused in (1, 3, 5):
    centers = 4 * rng.standard_normal((6, 10))
    centers[confused] = centers[confused - 1]
    views.append(centers[labels] + rng.standard_normal((240, 10)))

chosen = emvc.select(views, multipliers=(1.0,), random_state=0)
print(f"{chosen.n_clusters} clusters, confidence {chosen.confidence:.2f}")

# %%
# A chain with c clusters has c eigenvalues near one, and then a gap; the score is the width of the gap times the root
# of log c. A clear peak gives a high confidence. For real data it is often low: the first 300 digits have ten
# classes, but other numbers explain their graphs about as well.

digits = emvc.select(make_digits_views(n_samples=300).views, multipliers=(1.0,), random_state=0)
print(f"{digits.n_clusters} clusters of digits, confidence {digits.confidence:.2f}")

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, title, selection in zip(axes, ("six groups", "ten digits"), (chosen, digits), strict=True):
    candidates = [record["n_clusters"] for record in selection.clusters]
    for measure in ("eigenvalue", "gap", "score"):
        values = [record[measure] for record in selection.clusters]
        ax.plot(candidates, values, "o-", ms=3, label=measure, lw=2.5 if measure == "score" else 1)
    ax.axvline(selection.n_clusters, color="0.6", ls="--", lw=1)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(title=f"{title}: {selection.n_clusters}, confidence {selection.confidence:.2f}", xlabel="clusters")
axes[0].legend(frameon=False)
plt.show()

# %%
# With a confidence below 0.1, treat the number as one candidate among several: look at the second best, or at what you
# know about the data. On real sets the automatic choice is wrong by a factor of about two (:doc:`/board`).
ranked = sorted(digits.clusters, key=lambda record: -record["score"])
print("best candidates:", ", ".join(f"{record['n_clusters']:.0f} ({record['score']:.2f})" for record in ranked[:4]))
