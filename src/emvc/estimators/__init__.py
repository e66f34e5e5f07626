"""Estimators: the method of the paper and the baselines it is compared with."""

from emvc.estimators.amgl import AMGL
from emvc.estimators.best_single_view import BestSingleView
from emvc.estimators.co_regularized import CoRegularized
from emvc.estimators.emvc import EMVC
from emvc.estimators.feature_concatenation import FeatureConcatenation
from emvc.estimators.kernel_addition import KernelAddition
from emvc.estimators.rmsc import RMSC

__all__ = ["AMGL", "EMVC", "RMSC", "BestSingleView", "CoRegularized", "FeatureConcatenation", "KernelAddition"]
