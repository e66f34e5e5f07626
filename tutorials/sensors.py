"""
Movements seen by two sensors
=============================

A smart watch records how people stand, walk, run and play badminton: acceleration and rotation, each as 12 moments and
75 strengths of frequencies. How many kinds of movement are there, and which are they?
"""

# %%
# The recordings are "BasicMotions" of the UEA archive, as the package aeon has them; the features are those of the
# board (see :doc:`/board`).

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import emvc
from emvc import EMVC, plot
from emvc.datasets import corrupt_samples

with np.load(Path(os.environ["EMVC_DATA"]) / "board" / "basic_motions.npz", allow_pickle=False) as file:
    views = {"acceleration": file["x0"].astype(float), "rotation": file["x1"].astype(float)}
    activity = np.array(["badminton", "running", "standing", "walking"])[file["y"]]
names = [f"{part} {k}" for part, n in (("moment", 12), ("frequency", 75)) for k in range(n)]

# %%
# With four clusters each activity is one of them. A fifth of the recordings of one sensor are then replaced by random
# values, as from a loose strap: the other sensor places these, and they are named.

damaged, wrong = corrupt_samples(views, 0.2, 0)
damaged = {"acceleration": damaged["acceleration"], "rotation": views["rotation"]}
for what, sensors in (("as recorded", views), ("damaged", damaged)):
    model = EMVC(n_clusters=4, random_state=0).fit(sensors)
    explanation = emvc.explain(model, sensors, {"activity": activity}, split=True)
    print(f"{what}: agreement with the activities (ARI) {explanation.agreement.ari[0]:.2f}")
found = model.outliers_[:, 0]
hits, damage = (found & wrong[:, 0]).sum(), wrong[:, 0].sum()
print(f"{hits} of {damage} damaged recordings found, {found.sum() - hits} others")

# %%
# What sets the activities apart, in spite of the damage:

for cluster, name in enumerate(explanation.names()):
    rows = explanation.markers.query(f"cluster == {cluster} and fdr < 0.05").head(3)
    told = [f"{row.view}: {names[int(row.feature)]} {row.direction}" for row in rows.itertuples()]
    print(f"{name:10} {'; '.join(told)}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.embedding(model, left)
plot.annotations(explanation, right, column="activity")
plt.show()
