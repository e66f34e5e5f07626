"""Estimators: the method of the paper and the baselines it is compared with."""

from emvc.estimators.emvc import EMVC
from emvc.estimators.feature_concatenation import FeatureConcatenation
from emvc.estimators.kernel_addition import KernelAddition

__all__ = ["EMVC", "FeatureConcatenation", "KernelAddition"]
