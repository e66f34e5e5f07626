"""Estimators: the method of the paper and the baselines it is compared with."""

from emvc.estimators.amgl import AMGL
from emvc.estimators.best_single_view import BestSingleView
from emvc.estimators.co_regularized import CoRegularized
from emvc.estimators.emvc import EMVC
from emvc.estimators.etlmsc import ETLMSC
from emvc.estimators.feature_concatenation import FeatureConcatenation
from emvc.estimators.gmc import GMC
from emvc.estimators.kernel_addition import KernelAddition
from emvc.estimators.lmvsc import LMVSC
from emvc.estimators.nemo import NEMO
from emvc.estimators.rmsc import RMSC
from emvc.estimators.snf import SNF

__all__ = [
    "AMGL",
    "EMVC",
    "ETLMSC",
    "GMC",
    "LMVSC",
    "NEMO",
    "RMSC",
    "SNF",
    "BestSingleView",
    "CoRegularized",
    "FeatureConcatenation",
    "KernelAddition",
]
