"""Fitting an `emvc.EMVC` to Dask arrays."""

from __future__ import annotations

from typing import Any

from emvc._validation import check_choice, check_generator, check_integer, check_n_clusters
from emvc.method import landmarks

_COUNTED = 2000  # samples that choose the number of clusters


def fit_dask(model: Any, views: Any) -> Any:
    """Fit a model to Dask arrays; a failed or interrupted fit leaves nothing on the workers."""
    from emvc.distributed import DaskSource, quiet

    solver, _ = model._check_options()
    if solver is not None or model._affinity_name() != "local":
        raise ValueError(
            "Dask arrays are clustered with landmarks, which needs solver='auto' without weights and "
            f"affinity='local'; got solver={model.solver!r}, beta={model.beta!r}, lam={model.lam!r} and "
            f"affinity={model.affinity!r}."
        )
    check_integer(model.n_init, "n_init", least=1)
    rng = check_generator(model.random_state)
    source = DaskSource(views)
    evidence: dict[str, Any] = {}
    try:
        with quiet():
            if isinstance(model.n_clusters, str):
                check_choice(model.n_clusters, "n_clusters", ("auto",))
                sample = source.take(landmarks.draw(source.n_samples, min(_COUNTED, source.n_samples)))
                n_clusters, evidence = model._count(sample)
            else:
                n_clusters = check_n_clusters(model.n_clusters, source.n_samples)
            if model.n_landmarks is None:
                number = landmarks.default_n_landmarks(source.n_samples, n_clusters)
            else:
                number = landmarks.check_n_landmarks(model.n_landmarks, source.n_samples, n_clusters)
            fitted = model._fit_landmarks(source, n_clusters, min(number, source.n_samples), rng)
    except BaseException:
        source.close()
        raise
    fitted.pop("_training")
    described = {
        "view_names_": list(source.names),
        "intake_": [],
        "n_features_in_": sum(source.n_features),
        "feature_names_in_": {},
    }
    model._set_fitted(fitted | evidence | described)
    return model
