"""
The published algorithm and the certified one
=============================================

Both minimise the objective of the paper. The published algorithm ends at a feasible point, the certified solver at the
optimum. How far apart are they?
"""

# %%
# Numbers for ``beta`` and ``lam`` ask for the model of the paper. Its certified solver, ``"admm"``, keeps a lower bound
# on the objective (:doc:`/method`, section 7). The bound holds for every consensus, so the published one can be judged
# by it as well.

import matplotlib.pyplot as plt

from emvc import EMVC
from emvc.datasets import make_paper_synthetic
from emvc.problem import relative_gap

data = make_paper_synthetic(n_per_cluster=100, random_state=0)
weights, gaps = (0.01, 0.1, 1.0), []
for weight in weights:
    certified = EMVC(2, beta=weight, lam=weight, affinity="rbf", random_state=0).fit(data.views)
    published = EMVC(2, beta=weight, lam=weight, affinity="rbf", solver="alm", random_state=0).fit(data.views)
    bound = certified.objective_ * (1 - certified.duality_gap_)
    gaps.append((certified.duality_gap_, relative_gap(published.objective_, bound)))
    print(
        f"beta = lam = {weight:<5} certified {certified.objective_:7.3f} (gap {gaps[-1][0]:.0e}), "
        f"published {published.objective_:7.3f} (gap {gaps[-1][1]:.0e})"
    )

# %%
# A gap of 0.1 means that up to a tenth of the objective could still be saved. The certified solver stops when its gap
# is below ``tol``, 0.001 by default.

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.loglog(weights, gaps, "o-", label=["certified", "published"])
ax.set(xlabel="beta = lam", ylabel="relative duality gap", title="Distance from the optimum")
ax.legend(frameon=False)
plt.show()
