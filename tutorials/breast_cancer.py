"""
Breast cancer in three omics, a third of the proteins missing
=============================================================

Tumours of 220 patients, described by micro-RNA, messenger RNA and proteins. Of 70 patients the proteins were never
measured. Do the three together find the subtypes that pathologists know, and what sets them apart?
"""

# %%
# The data are ``breast.TCGA`` of the R package mixOmics (from The Cancer Genome Atlas). R writes them as files that
# emvc reads, names of genes included::
#
#     library(mixOmics); data(breast.TCGA)
#     train <- breast.TCGA$data.train; test <- breast.TCGA$data.test
#     write.csv(rbind(train$mirna, test$mirna), "mirna.csv")
#     write.csv(rbind(train$mrna, test$mrna), "mrna.csv")
#     write.csv(train$protein, "protein.csv")
#     subtype <- c(as.character(train$subtype), as.character(test$subtype))
#     id <- c(rownames(train$mrna), rownames(test$mrna))
#     write.csv(data.frame(id, subtype), "clinical.csv", row.names = FALSE)
#
# Then two commands are all it takes, and ``result/report.html`` is the page to look at::
#
#     emvc check mirna.csv mrna.csv protein.csv
#     emvc cluster mirna.csv mrna.csv protein.csv -k 3 --annotate clinical.csv --split --name-clusters -o result
#
# Here the same in Python, with the arrays of the board (see :doc:`/board`), where genes have numbers, not names.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import emvc
from emvc import EMVC, plot

with np.load(Path(os.environ["EMVC_DATA"]) / "board" / "brca_tcga_mixomics.npz", allow_pickle=False) as file:
    views = {name: file[f"x{k}"].astype(float) for k, name in enumerate(("mirna", "mrna", "protein"))}
    subtype = np.array(["Basal", "Her2", "LumA"])[file["y"]]
for name, view in views.items():
    print(f"{name:8} {view.shape[1]} features, {np.isnan(view).all(axis=1).sum()} of {len(view)} samples missing")

# %%
# Missing patients are rows of NaN; nothing has to be filled in. The subtypes are not shown to the method.

model = EMVC(n_clusters=3, random_state=0).fit(views)
explanation = emvc.explain(model, views, {"subtype": subtype}, split=True)
print(explanation)

# %%
# The clusters are the subtypes, but for a few tumours, which also holds for the patients without proteins.

print(explanation.contingency("subtype"))
unmeasured = np.isnan(views["protein"]).all(axis=1)
for who, chosen in (("all three views", ~unmeasured), ("no proteins", unmeasured)):
    pairs = zip(model.labels_[chosen], subtype[chosen], strict=True)
    hits = [explanation.names()[label] == truth for label, truth in pairs]
    print(f"{who:16} {np.mean(hits):.1%} of {len(hits)} in the cluster named like their subtype")

plot.flow(np.array(explanation.names())[model.labels_], subtype, names=("clusters", "subtypes"))
plt.show()

# %%
# Which features set them apart? p-values would be too small if each view were tested against clusters that it helped to
# find. With ``split=True`` every view is tested against the clusters that the other two find.

plot.markers(explanation, plt.subplots(figsize=(8, 5), layout="constrained")[1], n=5)
plt.show()

# %%
# The same tests find nothing in subtypes that are shuffled.

rng = np.random.default_rng(0)
shuffled = {f"shuffled {k}": rng.permutation(subtype) for k in range(10)}
print(emvc.explain(model, None, shuffled).annotations[["column", "fdr"]].to_string(index=False))
