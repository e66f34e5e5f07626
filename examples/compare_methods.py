"""
Methods under corruption
========================

Destroy a growing share of the samples, in every view other ones, and see which method still finds the digits.
"""

# %%
# Everything runs with its defaults, and labels serve only to score. ``RMSC`` is left out because its entrywise
# errors take the solver much longer than everything else here together.

import matplotlib.pyplot as plt

from emvc import AMGL, EMVC, BestSingleView, CoRegularized, FeatureConcatenation, KernelAddition
from emvc.datasets import corrupt_samples, make_digits_views
from emvc.metrics import clustering_scores

data = make_digits_views(n_samples=300)
methods = (EMVC, CoRegularized, AMGL, KernelAddition, FeatureConcatenation, BestSingleView)
shares = (0.0, 0.1, 0.2, 0.3)
scores = {method.__name__: [] for method in methods}
for share in shares:
    views, _ = corrupt_samples(data.views, share, random_state=0, same_samples=False)
    for method in methods:
        labels = method(10, random_state=0).fit_predict(views)
        scores[method.__name__].append(clustering_scores(data.labels, labels)["nmi"])

# %%
# On clean data the others are close to each other, and joining the features is the best of them. Under errors they
# part: an average lets every wrong row through, EMVC leaves ruined rows out and lets doubtful ones count for little.

print("destroyed per view   " + "  ".join(f"{share:4.0%}" for share in shares))
for name, row in scores.items():
    print(f"{name:20} " + "  ".join(f"{value:.2f}" for value in row))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, row in scores.items():
    ax.plot(shares, row, "o-", label=name, lw=2.5 if name == "EMVC" else 1.2)
ax.set(xlabel="share of samples destroyed in each view", ylabel="NMI", title="300 digits, three views", ylim=(0, 1))
ax.legend(frameon=False, fontsize="small")
plt.show()

# %%
# One data set and one seed: a picture, not a verdict. The measurements over many sets and seeds are on
# :doc:`/board`, what to take when in :doc:`/choosing`.
