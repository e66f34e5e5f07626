"""Tables as views: joined on their ids, encoded, and the same labels whatever library they come from."""

import anndata
import mudata
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

import emvc
from emvc import EMVC, NEMO, KernelAddition, ViewSplitter
from emvc._validation import check_views
from emvc.intake import anndata_views
from emvc.metrics import structure_score, structure_scorer

IDS = [f"s{i}" for i in range(60)]


def frame(view, prefix, ids=IDS):
    return pd.DataFrame(view, index=ids, columns=[f"{prefix}{j}" for j in range(view.shape[1])])


@pytest.fixture(autouse=True)
def new_mudata():
    """The behaviour that will be the default, without a warning about it."""
    with mudata.set_options(pull_on_update=False):
        yield


@pytest.fixture
def frames(blobs):
    return {name: frame(view, name[0]) for name, view in zip(("gene", "lipid"), blobs[0], strict=True)}


def fit(views, **options):
    return EMVC(3, random_state=0, n_jobs=1, **options).fit(views)


# ---- joining ----


def test_frames_are_joined_on_their_index(frames, rng):
    gene = frames["gene"].iloc[rng.permutation(60)][:50]
    lipid = frames["lipid"].iloc[rng.permutation(60)][5:]
    joined = fit({"gene": gene, "lipid": lipid})
    names = joined.sample_names_.tolist()
    assert names == [*gene.index, *(name for name in lipid.index if name not in set(gene.index))]
    by_hand = fit({"gene": gene.reindex(names).to_numpy(), "lipid": lipid.reindex(names).to_numpy()})
    np.testing.assert_array_equal(joined.labels_, by_hand.labels_)
    absent = [[name not in view.index for view in (gene, lipid)] for name in names]
    np.testing.assert_array_equal(np.isnan(joined.sample_errors_), absent)


def test_rows_are_never_paired_by_place_where_ids_tell_otherwise(frames, blobs):
    reversed_rows = {"gene": frames["gene"], "lipid": frames["lipid"].iloc[::-1]}
    np.testing.assert_array_equal(fit(reversed_rows).labels_, blobs[1])
    filtered = [view.reset_index(drop=True) for view in frames.values()]
    filtered[1] = filtered[1].drop(index=[3, 4]).iloc[::-1]
    model = fit(filtered)
    assert model.sample_names_.tolist() == list(range(60))
    np.testing.assert_array_equal(model.labels_, blobs[1])
    assert np.flatnonzero(np.isnan(model.sample_errors_[:, 1])).tolist() == [3, 4]


def test_methods_that_need_all_samples_say_so(frames):
    with pytest.raises(ValueError, match="view 'lipid': sample 's0' is missing"):
        KernelAddition(3).fit({"gene": frames["gene"], "lipid": frames["lipid"][1:]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda g, p: [g.reset_index(drop=True), p.reset_index(drop=True)[:50]],
            "60 rows, view '1' has 50.*mere count",
        ),
        (lambda g, p: [g, p.reset_index(drop=True)], "view '0' has no sample id in common.*'s0' here, 0 there"),
        (lambda g, p: [g, p.rename(lambda i: f"x{i}")], "view '0' has no sample id in common.*'s0' here, 'xs0' there"),
        (lambda g, p: [g.set_axis(range(60, 120)), p.set_axis(map(str, range(60, 120)))], r"\(numbers and text\)"),
        (lambda g, p: [g, p[::-1], np.ones((60, 2))], "view '2' has no sample ids, but the ids of the others differ"),
        (lambda g, p: [g, p.rename({"s4": "s3"})], "view '1': the id 's3' appears twice in the index"),
        (lambda g, p: [g, p.rename({"s4": None})], "view '1': row 4 has no id in the index"),
        (lambda g, p: [g, p[:40].to_numpy()], "view '0' has 60 rows, view '1' has 40"),
    ],
    ids=["counts", "count-and-ids", "other-ids", "types", "array", "twice", "null", "length"],
)
def test_rows_that_cannot_be_matched_are_refused(frames, change, message):
    with pytest.raises(ValueError, match=message):
        check_views(change(frames["gene"], frames["lipid"]), allow_missing=True)


def test_a_sample_without_an_id_is_refused_in_one_table_as_well(frames):
    with pytest.raises(ValueError, match="view '0': row 4 has no id in the index"):
        check_views(frames["gene"].rename({"s4": np.nan}))
    assert check_views(frames["gene"].rename({"s4": "s3"})).n_samples == 60


def test_ids_in_a_column_that_contradict_the_order_are_refused(frames):
    one, other = (view.reset_index(names="sample_id") for view in frames.values())
    assert check_views([one, other]).n_features == (4, 6)
    with pytest.raises(ValueError, match=r"Column 'sample_id' holds ids in another order in view '1' than in view '0'"):
        check_views([one, other.iloc[::-1].reset_index(drop=True)])


def test_frames_of_sparse_columns_stay_sparse():
    matrix = scipy.sparse.random(30, 400, 0.05, format="csr", random_state=0)
    table = pd.DataFrame.sparse.from_spmatrix(matrix).add_prefix("word")
    checked = check_views({"words": table, "dense": table.sparse.to_dense()})
    assert scipy.sparse.issparse(checked.arrays[0])
    np.testing.assert_array_equal(checked.arrays[0].toarray(), checked.arrays[1])
    assert checked.feature_names[0][:2] == ("word0", "word1")


def test_frames_without_ids_go_with_arrays_of_the_same_length(frames, blobs):
    model = fit([frames["gene"], blobs[0][1]])
    np.testing.assert_array_equal(model.labels_, blobs[1])
    assert model.sample_names_.tolist() == IDS


def test_affinities_are_not_joined(blobs):
    links = [pd.DataFrame(np.exp(-((view[:, None] - view) ** 2).sum(axis=2)), IDS, IDS) for view in blobs[0]]
    model = EMVC(3, affinity="precomputed", random_state=0)
    np.testing.assert_array_equal(model.fit(links).labels_, blobs[1])
    with pytest.raises(ValueError, match="The affinities have different row indices"):
        model.fit([links[0], links[1].iloc[::-1]])


# ---- columns ----


@pytest.fixture
def clinic(blobs):
    rng = np.random.default_rng(3)
    labels = blobs[1]
    return pd.DataFrame(
        {
            "patient": rng.permutation(60) + 100,
            "dose": [f"{x:.2f}".replace(".", ",") for x in 5 * labels + rng.normal(size=60)],
            "stage": np.array(["I", "II", "III"])[labels],
            "smoker": rng.choice(["yes", "no"], 60),
            "seen": pd.date_range("2020-01-01", periods=60)[rng.permutation(60)],
            "remark": [f"was seen on day {i}" for i in range(60)],
        },
        index=IDS,
    )


@pytest.mark.parametrize("estimator", [EMVC, KernelAddition, NEMO])
def test_messy_columns_are_encoded_and_recorded(estimator, clinic, frames, blobs):
    views = {"clinic": clinic, "gene": frames["gene"]}
    model = estimator(3, random_state=0).fit(views)
    np.testing.assert_array_equal(model.labels_, blobs[1])
    assert {(record.view, record.name, record.kind, record.action) for record in model.intake_} == {
        ("clinic", "patient", "id", "dropped"),
        ("clinic", "dose", "number", "numbers"),
        ("clinic", "stage", "category", "one-hot"),
        ("clinic", "smoker", "boolean", "0/1"),
        ("clinic", "seen", "date", "days"),
        ("clinic", "remark", "text", "dropped"),
    }
    assert model.feature_names_in_["clinic"].tolist() == list(clinic.columns)
    assert model.n_features_in_ == 10
    plain = estimator(3, random_state=0).fit(frames)
    assert plain.intake_ == []


def test_new_samples_are_encoded_like_those_of_the_fit(clinic, frames, tmp_path):
    model = fit({"clinic": clinic, "gene": frames["gene"]})
    new = {"gene": frames["gene"][:9], "clinic": clinic[:9].iloc[:, ::-1].drop(columns=["remark", "patient"])}
    wanted = model.predict({"clinic": clinic[:9], "gene": frames["gene"][:9]})
    np.testing.assert_array_equal(wanted, model.labels_[:9])
    model.save(tmp_path / "m.emvc")
    loaded = emvc.load(tmp_path / "m.emvc")
    assert loaded.intake_ == model.intake_
    for fitted in (model, loaded):
        np.testing.assert_array_equal(fitted.predict(new), wanted)
        np.testing.assert_allclose(fitted.transform(new), model.transform(list(new.values())[::-1]))
        np.testing.assert_allclose(fitted.predict_proba(new), model.predict_proba(new))
        with pytest.raises(
            ValueError, match="view 'clinic': column 'dose' is missing; the fit had 6: 'patient', 'dose'"
        ):
            fitted.predict(dict(new, clinic=new["clinic"].rename(columns={"dose": "gift"})))
        with pytest.warns(UserWarning, match=r"clinic: column 'stage' has values that were not there.*'IV'"):
            fitted.predict(dict(new, clinic=new["clinic"].assign(stage="IV")))


def test_messages_name_samples_and_columns(frames):
    broken = {"gene": frames["gene"], "lipid": frames["lipid"].iloc[::-1].copy()}
    broken["lipid"].loc["s7", "l3"] = np.inf
    with pytest.raises(ValueError, match=r"view 'lipid': sample 's7' contains infinity \(inf\) in column 'l3'"):
        check_views(broken)
    broken["lipid"].loc["s7", "l3"] = 1e200
    with pytest.raises(ValueError, match=r"view 'lipid': the value 1e\+200 of sample 's7' in column 'l3' is too large"):
        check_views(broken)
    with pytest.raises(ValueError, match=r"sample 's9' is missing \(a row of NaN\) in every view"):
        check_views([frames["gene"].drop("s9").reindex(IDS)] * 2, allow_missing=True)


def test_new_frames_are_joined_as_well(frames):
    model = fit(frames)
    new = {"gene": frames["gene"][:20], "lipid": frames["lipid"][10:30].iloc[::-1]}
    names = [*IDS[:20], *IDS[20:30][::-1]]
    np.testing.assert_array_equal(model.predict(new), [model.labels_[IDS.index(name)] for name in names])


def test_columns_without_names_are_told_by_their_places(blobs):
    views = [pd.DataFrame(view) for view in blobs[0]]
    model = fit(views)
    assert model.feature_names_in_ == {}
    wanted = model.labels_
    np.testing.assert_array_equal(model.predict([view.iloc[:, ::-1] for view in views]), wanted)
    np.testing.assert_array_equal(model.predict([view.add_prefix("g") for view in views]), wanted)
    np.testing.assert_array_equal(model.predict(blobs[0]), wanted)


def test_columns_of_text_in_arrays_are_named(clinic):
    with pytest.raises(ValueError, match=r"view 'b': column 1 is text \('13,57'\)|view 'b': column 1 is text"):
        check_views({"a": np.ones((60, 2)), "b": clinic.to_numpy()})


def test_a_series_is_a_view_of_one_column(frames):
    checked = check_views([frames["gene"], frames["lipid"]["l0"]])
    assert checked.n_features == (4, 1)
    assert check_views([pl.Series("a", [1.0, 2.0]), pl.Series("b", [3.0, 4.0])]).n_features == (1, 1)


# ---- libraries ----


def as_anndata(frames):
    return anndata.AnnData(frames["gene"], obsm={"lipid": frames["lipid"].to_numpy()})


def as_mudata(frames):
    return mudata.MuData({name: anndata.AnnData(view) for name, view in frames.items()})


CONTAINERS = {
    "arrays": lambda frames: {name: view.to_numpy() for name, view in frames.items()},
    "list": lambda frames: list(frames.values()),
    "shuffled": lambda frames: {name: view.iloc[:, ::-1].iloc[:, ::-1] for name, view in frames.items()},
    "nullable": lambda frames: {name: view.convert_dtypes() for name, view in frames.items()},
    "text": lambda frames: {name: view.astype(str) for name, view in frames.items()},
    "commas": lambda frames: {n: v.astype(str).apply(lambda c: c.str.replace(".", ",")) for n, v in frames.items()},
    "polars": lambda frames: {name: pl.from_pandas(view) for name, view in frames.items()},
    "arrow": lambda frames: {name: pl.from_pandas(view).to_arrow() for name, view in frames.items()},
    "anndata": as_anndata,
    "anndatas": lambda frames: {name: anndata.AnnData(view) for name, view in frames.items()},
    "sparse": lambda frames: {n: anndata.AnnData(scipy.sparse.csr_matrix(v.to_numpy())) for n, v in frames.items()},
    "mudata": as_mudata,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_same_data_give_the_same_labels_in_every_container(container, rng):
    """Clusters that overlap, so that data which differ in anything would hardly give equal labels."""
    labels = np.repeat([0, 1, 2], 20)
    views = [1.2 * rng.standard_normal((3, d))[labels] + rng.standard_normal((60, d)) for d in (4, 6)]
    frames = {name: frame(view, name[0]) for name, view in zip(("gene", "lipid"), views, strict=True)}
    wanted = fit(frames)
    found = fit(CONTAINERS[container](frames))
    np.testing.assert_array_equal(found.labels_, wanted.labels_)
    np.testing.assert_array_equal(found.predict(CONTAINERS[container](frames)), wanted.predict(frames))


def test_polars_frames_have_no_ids_and_need_the_same_length(frames):
    short = {"gene": pl.from_pandas(frames["gene"]), "lipid": pl.from_pandas(frames["lipid"])[:50]}
    with pytest.raises(ValueError, match="view 'gene' has 60 rows, view 'lipid' has 50"):
        check_views(short, allow_missing=True)
    with pytest.raises(ValueError, match="view 'gene' has no sample ids"):
        check_views(dict(short, lipid=frames["lipid"], more=frames["lipid"].iloc[::-1]), allow_missing=True)


def test_polars_text_is_encoded(clinic):
    one, other = (check_views(table) for table in (clinic, pl.from_pandas(clinic)))
    np.testing.assert_array_equal(one.arrays[0], other.arrays[0])
    assert one.records == other.records


def test_observations_without_names_are_told_by_their_places(blobs):
    adata = anndata.AnnData(blobs[0][0])
    model = fit({"a": adata, "b": pd.DataFrame(blobs[0][1])})
    assert model.feature_names_in_ == {}
    np.testing.assert_array_equal(model.labels_, blobs[1])
    emvc.to_anndata(model, adata)
    np.testing.assert_array_equal(adata.obs["emvc_label"], blobs[1])
    with pytest.raises(ValueError, match=r"view 'a' has 60 rows, view 'b' has 50.*mere count"):
        check_views({"a": adata, "b": adata[:50].copy()}, allow_missing=True)


@pytest.mark.parametrize("matrix", [np.asarray, scipy.sparse.csr_matrix])
def test_variables_are_put_in_order_and_other_ones_refused(matrix, frames, tmp_path):
    parts = {name: anndata.AnnData(matrix(view.to_numpy())) for name, view in frames.items()}
    for name, part in parts.items():
        part.obs_names, part.var_names = IDS, frames[name].columns
    model = fit(parts)
    assert model.feature_names_in_["lipid"].tolist() == list(frames["lipid"].columns)
    model.save(tmp_path / "m.emvc")
    model = emvc.load(tmp_path / "m.emvc")
    np.testing.assert_array_equal(model.predict({n: part[:, ::-1].copy() for n, part in parts.items()}), model.labels_)
    np.testing.assert_array_equal(model.predict({n: view.iloc[:, ::-1] for n, view in frames.items()}), model.labels_)
    parts["gene"].var_names = ["g0", "other", "g2", "g3"]
    with pytest.raises(ValueError, match=r"view 'gene': column 'g1' is missing; the fit had 4: 'g0', 'g1'"):
        model.predict(parts)


def test_a_matrix_may_stand_for_an_encoded_table(clinic, frames):
    columns = ["dose", "patient"]
    model = fit({"clinic": clinic[columns].assign(dose=clinic["dose"].str.replace(",", ".")), "gene": frames["gene"]})
    numbers = clinic[columns].assign(dose=clinic["dose"].str.replace(",", ".").astype(float)).astype(float)
    found = model.predict({"clinic": anndata.AnnData(numbers), "gene": frames["gene"]})
    np.testing.assert_array_equal(found, model.labels_)


def test_layers_and_chosen_entries_of_an_anndata(frames):
    adata = as_anndata(frames)
    adata.layers["scaled"] = adata.X * 2.0
    adata.obsm["X_pca"] = np.zeros((60, 2))
    assert list(anndata_views(adata)) == ["X", "lipid"]
    assert list(anndata_views(adata, layer="scaled", obsm=["X_pca"])) == ["scaled", "X_pca"]
    checked = check_views(anndata_views(adata, layer="scaled"))
    np.testing.assert_array_equal(checked.arrays[0], 2.0 * adata.X)
    assert checked.feature_names[0] == tuple(frames["gene"].columns)
    with pytest.raises(ValueError, match="no layer 'counts'; it has 'scaled'"):
        anndata_views(adata, layer="counts")
    with pytest.raises(ValueError, match=r"no entry of .obsm 'protein'; it has 'lipid', 'X_pca'"):
        anndata_views(adata, obsm=["protein"])
    with pytest.raises(ValueError, match="neither X nor entries"):
        anndata_views(anndata.AnnData(obs=pd.DataFrame(index=IDS)))


@pytest.mark.parametrize("convert", [as_anndata, as_mudata])
def test_results_are_written_where_the_data_are(convert, frames, tmp_path):
    frames["gene"].iloc[7] = 1e3
    data = convert(frames)
    model = fit(data)
    shuffled = data[::-1].copy()
    write = emvc.to_anndata if convert is as_anndata else emvc.to_mudata
    write(model, shuffled)
    shuffled.write(tmp_path / "results.h5")
    read = (anndata.read_h5ad if convert is as_anndata else mudata.read_h5mu)(tmp_path / "results.h5")
    obs = read.obs.loc[IDS]
    np.testing.assert_array_equal(obs["emvc_label"], model.labels_)
    np.testing.assert_allclose(obs["emvc_confidence"], model.confidence_)
    assert obs.index[obs[f"emvc_outlier_{model.view_names_[0]}"]].tolist() == ["s7"]
    np.testing.assert_allclose(read.obsm["X_emvc"], model.embedding_[::-1])
    assert read.uns["emvc"]["method"] == "EMVC"
    assert list(read.uns["emvc"]["view_names"]) == model.view_names_
    # What was written is no view of a later fit.
    np.testing.assert_array_equal(fit(shuffled).view_names_, model.view_names_)


def test_observations_that_the_model_does_not_know_are_refused(frames):
    model = fit({name: view[:50] for name, view in frames.items()})
    with pytest.raises(ValueError, match="Observation 's50' is not a sample of the model"):
        emvc.to_anndata(model, as_anndata(frames))


# ---- pipelines ----


@pytest.fixture
def table(frames, clinic):
    return pd.concat([*frames.values(), clinic[["stage", "smoker"]], pd.DataFrame({"extra": 1.0}, IDS)], axis=1)


@pytest.fixture
def splitter():
    gene, lipid = [f"g{j}" for j in range(4)], [f"l{j}" for j in range(6)]
    return ViewSplitter(columns={"gene": gene, "lipid": lipid, "clinic": ["stage", "smoker"]})


def test_a_pipeline_clusters_one_table(table, splitter, blobs):
    model = make_pipeline(splitter, EMVC(3, random_state=0))
    np.testing.assert_array_equal(model.fit_predict(table), blobs[1])
    np.testing.assert_array_equal(clone(model).fit(table).predict(table[::-1].iloc[:, ::-1]), blobs[1][::-1])
    assert model[0].unused_ == ["extra"]
    assert model[-1].view_names_ == ["gene", "lipid", "clinic"]
    assert model.transform(table).shape == model[-1].embedding_.shape


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_pipeline_gives_frames_where_they_are_asked_for(library, table, splitter):
    model = make_pipeline(splitter, EMVC(3, random_state=0)).set_output(transform=library)
    points = model.fit(table).transform(table)
    frame_type = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    assert isinstance(points, frame_type)
    assert next(iter(points.columns)) == "emvc0"
    assert all(isinstance(view, frame_type) for view in model[0].transform(table).values())


def test_searches_work_without_labels(table, splitter):
    model = Pipeline([("views", splitter), ("cluster", EMVC(random_state=0, n_init=2))])
    search = GridSearchCV(model, {"cluster__n_clusters": [2, 3, 4]}, scoring=structure_scorer, cv=3)
    shuffled = table.iloc[np.random.default_rng(0).permutation(60)]
    assert search.fit(shuffled).best_params_ == {"cluster__n_clusters": 3}
    assert search.predict(shuffled[:4]).shape == (4,)


def test_a_splitter_takes_arrays_selectors_and_polars(table, blobs):
    array = np.hstack(blobs[0])
    views = ViewSplitter(columns={"a": [0, 1, 2, 3], "b": range(4, 10)}).fit_transform(array)
    np.testing.assert_array_equal(views["b"], blobs[0][1])
    chosen = ViewSplitter(columns={"gene": lambda t: [c for c in t.columns if c.startswith("g")]}).fit(table)
    assert chosen.columns_ == {"gene": ["g0", "g1", "g2", "g3"]}
    assert isinstance(chosen.transform(pl.from_pandas(table))["gene"], pl.DataFrame)
    assert chosen.get_feature_names_out().tolist() == ["gene__g0", "gene__g1", "gene__g2", "gene__g3"]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"gene": ["g0", "g9", "g8"]}, ValueError, "view 'gene': the table has no column 'g9' and 1 others"),
        ({"gene": []}, ValueError, "view 'gene' has no column"),
        ({"gene": "g0"}, TypeError, "view 'gene': give a list of columns, not the text 'g0'"),
        ({}, TypeError, "columns must be a dict"),
    ],
)
def test_a_splitter_refuses_columns_that_are_not_there(columns, error, message, table):
    with pytest.raises(error, match=message):
        ViewSplitter(columns=columns).fit(table)


def test_a_splitter_refuses_new_tables_without_its_columns(table, splitter):
    splitter.fit(table)
    with pytest.raises(ValueError, match="view 'lipid': the table has no column 'l3'"):
        splitter.transform(table.drop(columns="l3"))
    with pytest.raises(TypeError, match="one DataFrame or two-dimensional array, got list"):
        splitter.fit([table])


def test_structure_score_is_the_modularity_of_the_views():
    views = [np.repeat([[0.0], [9.0]], 15, axis=0) + np.random.default_rng(k).normal(size=(30, 2)) for k in range(2)]
    truth = np.repeat([0, 1], 15)
    assert structure_score(views, truth, n_neighbors=3) == pytest.approx(0.5)
    assert structure_score(views, np.zeros(30), n_neighbors=3) == pytest.approx(0.0)
    assert structure_score(views, np.random.default_rng(0).permutation(truth)) < 0.1
    without = [views[0], np.where(np.arange(30)[:, None] < 9, np.nan, views[1])]
    assert structure_score(without, np.where(np.arange(30) == 20, -1, truth), n_neighbors=3) > 0.4
    with pytest.raises(ValueError, match=r"30 samples, but labels has the shape \(29,\)"):
        structure_score(views, truth[1:])


# ---- cells ----


def test_cells_without_a_value_are_data_that_is_not_there(clinic, frames, blobs, rng):
    views = {"clinic": clinic, "gene": frames["gene"].mask(rng.random((60, 4)) < 0.1)}
    views["clinic"] = clinic.assign(
        dose=clinic["dose"].where(rng.random(60) < 0.9, "NA"), stage=clinic["stage"].mask(rng.random(60) < 0.1)
    )
    model = fit(views)
    np.testing.assert_array_equal(model.labels_, blobs[1])
    assert (model.missing_cells_ > 0.02).all()
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    assert structure_score(views, model.labels_) > 0.3
