"""The published algorithm ends at a feasible point, the certified solver at the optimum. How far apart are they?"""

from emvc import EMVC
from emvc.datasets import make_paper_synthetic
from emvc.problem import relative_gap

data = make_paper_synthetic(n_per_cluster=100, random_state=0)
for weight in (0.01, 0.1, 1.0):
    certified = EMVC(2, beta=weight, lam=weight, affinity="rbf", random_state=0).fit(data.views)
    published = EMVC(2, beta=weight, lam=weight, affinity="rbf", solver="alm", random_state=0).fit(data.views)
    bound = certified.objective_ * (1 - certified.duality_gap_)
    gap = relative_gap(published.objective_, bound)
    print(
        f"beta = lam = {weight:<5} certified {certified.objective_:7.3f} (gap {certified.duality_gap_:.0e}), "
        f"published {published.objective_:7.3f} (gap {gap:.0e})"
    )
