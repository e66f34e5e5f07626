"""What columns of real tables are taken for, and that new rows become the same numbers."""

import datetime
import json
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from emvc.intake import Coding, Rule, encode_frame

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=N).round(2) * 1000


def encode(cells, name="a", **others):
    """Return a column beside a numeric one: its values, and its record if there is one."""
    frame = pd.DataFrame({name: cells, "x": RNG.normal(size=len(cells)), **others})
    encoded = encode_frame(frame, view="v")
    rows = [i for i, column in enumerate(encoded.columns) if column.split("=")[0] == name]
    records = [record for record in encoded.records if record.name == name]
    return encoded.values[:, rows], records[0] if records else None


@pytest.mark.parametrize(
    "cells",
    [
        [str(x).replace(".", ",") for x in X],
        [f"{x:,.2f}" for x in X],
        [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in X],
        [f" {x:,.2f}\xa0".replace(",", " ") for x in X],
        [f"{x:,.2f}".replace(",", "'") for x in X],
        [f"{x:.2f} %" for x in X],
        [f"{x:.2f}mg" for x in X],
        [f"{x:.2f}".replace("-", "\u2212") for x in X],
        pd.Series([str(x) for x in X], dtype="string"),
        pd.Categorical([str(x).replace(".", ",") for x in X]),
    ],
    ids=["comma", "english", "german", "blanks", "swiss", "percent", "unit", "minus", "string", "categorical"],
)
def test_text_that_reads_as_numbers_becomes_numbers(cells):
    values, record = encode(cells)
    np.testing.assert_allclose(values[:, 0], X)
    assert (record.kind, record.action) == ("number", "numbers")


@pytest.mark.parametrize("kind", ["float32", "Float64", "Int64", "object", "Sparse[float64]", "float64[pyarrow]"])
def test_numbers_of_any_type_need_no_record(kind):
    cells = pd.Series(np.arange(3.0, 3.0 + 2 * N, 2.0))
    values, record = encode(cells.astype(kind))
    np.testing.assert_allclose(values[:, 0], cells)
    assert record is None


def test_numbers_and_text_may_be_mixed():
    values, record = encode([1, "2,5", None, 3.5, "NA", "?"] * 4)
    np.testing.assert_allclose(values[:6, 0], [1, 2.5, np.nan, 3.5, np.nan, np.nan])
    assert "decimal comma" in record.message


@pytest.mark.parametrize("marker", ["", " ", "NA", "n/a", "NaN", "null", "None", ".", "-", "?"])
def test_markers_stand_for_no_value(marker):
    values, _ = encode(["1.5", marker, "2.5", "3"] * 3)
    np.testing.assert_allclose(values[:4, 0], [1.5, np.nan, 2.5, 3.0])


def test_a_few_cells_that_are_no_numbers_count_as_missing_and_are_said():
    values, record = encode([*map(str, X[:38]), "low", "haemolysed"])
    np.testing.assert_allclose(values[:38, 0], X[:38])
    assert np.isnan(values[38:, 0]).all()
    assert "'low', 'haemolysed'" in record.message


def test_measurements_may_have_many_cells_that_are_no_numbers():
    """Where a value was below what could be measured, say; such numbers never become categories."""
    values, record = encode(["1,5", "<0,1", "2,25", "n.d."] * 5)
    np.testing.assert_allclose(values[:4, 0], [1.5, np.nan, 2.25, np.nan])
    assert "Other cells count as missing ('<0,1', 'n.d.')" in record.message
    values, record = encode(["1,5", "<0,1", "n.d.", "n.d."] * 5)
    assert values.shape[1] == 0
    assert "less than half of its cells are numbers" in record.message
    values, record = encode(pd.Categorical([0.5, 1.0, 2.5] * 5))
    np.testing.assert_allclose(values[:3, 0], [0.5, 1.0, 2.5])


def test_whole_numbers_beside_text_are_labels():
    values, record = encode(["1", "2", "3a", "3b"] * 5)
    assert (values.shape[1], record.action) == (4, "one-hot")


def test_plus_and_minus_are_two_values():
    values, _ = encode(["+", "-", "", "+"] * 5)
    np.testing.assert_array_equal(values[:4, 0], [0, 1, np.nan, 0])
    coding = encode_frame(pd.DataFrame({"a": ["+", "-"] * 5}), view="v").coding
    assert coding.apply(pd.DataFrame({"a": ["-"]})).values == [[1.0]]


def test_cells_of_any_kind_are_text_at_least():
    values, record = encode([[1, 2], {"a": 1}, (3,), b"x"] * 5)
    assert (values.shape[1], record.action) == (4, "one-hot")


def test_three_digits_after_a_comma_are_decimals_only_if_another_column_tells():
    cells = ["1,234", "5,678", "9,012", "3,456"] * 3
    values, record = encode(cells)
    assert values[0, 0] == 1234.0
    assert "two ways" in record.message
    values, _ = encode(cells, other=["0,5", "1,25", "2,5", "7"] * 3)
    assert values[0, 0] == 1.234
    assert encode_frame(pd.DataFrame({"a": cells}), view="v", decimal=",").values[0, 0] == 1.234
    values, _ = encode(["1.234", "5.678", "9.012", "3.456"] * 3, other=["0,5", "1,25", "2,5", "7"] * 3)
    assert values[0, 0] == 1234.0


def test_never_one_column_per_number():
    frame = pd.DataFrame({f"m{i}": [f"{x:.3f}".replace(".", ",") for x in RNG.normal(size=60)] for i in range(50)})
    encoded = encode_frame(frame, view="v")
    assert encoded.values.shape == (60, 50)
    numbers = pd.Categorical(RNG.normal(size=60))
    assert encode(numbers)[0].shape == (60, 1)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["yes", "no", "", "No"], "boolean"),
        ([True, False, None, False], "boolean"),
        (pd.array([True, False, None, False], dtype="boolean"), "boolean"),
        (["true", "FALSE", None, "False"], "boolean"),
        (["m", "f", "NA", "f"], "category"),
        (pd.Categorical(["m", "f", None, "f"]), "category"),
    ],
    ids=["words", "objects", "nullable", "case", "text", "categorical"],
)
def test_two_values_become_one_column(cells, kind):
    values, record = encode(pd.concat([pd.Series(cells)] * 3, ignore_index=True))
    np.testing.assert_array_equal(values[:4], [[1], [0], [np.nan], [0]])
    assert (record.kind, record.action) == (kind, "0/1")


def test_a_category_becomes_a_column_per_value_and_one_of_too_many_values_none():
    values, record = encode(["I", "II", None, "iii", "III"] * 4)
    np.testing.assert_array_equal(values[:5], [[1, 0, 0], [0, 1, 0], [np.nan] * 3, [0, 0, 1], [0, 0, 1]])
    assert (record.kind, record.action) == ("category", "one-hot")
    values, record = encode([f"c{i}" for i in range(20)] * 2)
    assert values.shape[1] == 20
    values, record = encode([f"c{i}" for i in range(21)] * 2)
    assert values.shape[1] == 0
    assert (record.kind, record.action) == ("category", "dropped")
    assert "21 values, more than 20" in record.message


def test_an_ordered_category_becomes_ranks():
    cells = pd.Categorical(["high", "low", None, "mid"] * 3, ["low", "mid", "high"], ordered=True)
    values, record = encode(cells)
    np.testing.assert_array_equal(values[:4, 0], [2, 0, np.nan, 1])
    assert record.action == "ranks"


@pytest.mark.parametrize(
    "cells",
    [
        ["1970-01-02", "1970-01-11", None],
        ["02.01.1970", "11.01.1970", ""],
        ["02/01/1970", "11/01/1970", "NA"],
        ["2 Jan 1970", "11 Jan 1970", None],
        ["1970-01-02T00:00:00Z", "1970-01-11T00:00:00+00:00", None],
        pd.to_datetime(["1970-01-02", "1970-01-11", None]),
        pd.to_datetime(["1970-01-02", "1970-01-11", None]).tz_localize("UTC"),
        [datetime.date(1970, 1, 2), datetime.date(1970, 1, 11), None],
        [datetime.datetime(1970, 1, 2), datetime.datetime(1970, 1, 11), None],
        pd.to_timedelta([1, 10, None], unit="D"),
        pd.PeriodIndex(["1970-01-02", "1970-01-11", None], freq="D"),
        pd.Series([datetime.date(1970, 1, 2), datetime.date(1970, 1, 11), None]).astype("date32[pyarrow]"),
    ],
    ids=[
        "iso",
        "dots",
        "slashes",
        "words",
        "zones",
        "times",
        "utc",
        "dates",
        "datetimes",
        "durations",
        "periods",
        "arrow",
    ],
)
def test_dates_become_days(cells):
    values, record = encode(pd.concat([pd.Series(cells)] * 4, ignore_index=True))
    np.testing.assert_allclose(values[:3, 0], [1, 10, np.nan])
    assert (record.kind, record.action) == ("date", "days")


def test_dates_whose_month_may_come_first_are_said():
    _, record = encode(["02/01/1970", "11/01/1970", "03/05/1971"] * 4)
    assert "Day or month first cannot be told" in record.message
    values, record = encode(["01/02/1970", "01/31/1970", "03/05/1971"] * 4)
    assert values[0, 0] == 1.0
    assert "cannot be told" not in record.message


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("code", [f"TCGA-{i:03d}" for i in range(N)], "id"),
        ("chip", [f"{i:04d}" for i in RNG.permutation(N)], "id"),
        ("subject", RNG.permutation(N) + 1000, "id"),
        ("patient_id", np.repeat(np.arange(N // 2) + 7, 2), "id"),
        ("Unnamed: 0", np.arange(N), "counter"),
        ("index", RNG.permutation(N) + 1, "counter"),
        ("anything", np.arange(1, N + 1), "counter"),
        ("anything", [str(i) for i in range(N)], "counter"),
        ("site", ["Leiden"] * N, "constant"),
        ("empty", [np.nan] * N, "empty"),
        ("empty", ["NA", ""] * (N // 2), "empty"),
        ("remark", [f"seen on day {i}, no change" for i in range(N)], "text"),
        ("remark", [f"r{i % 30}" for i in range(N)], "text"),
    ],
)
def test_columns_that_measure_nothing_are_dropped_and_said(name, cells, kind):
    values, record = encode(cells, name)
    assert values.shape[1] == 0
    assert (record.kind, record.action) == (kind, "dropped")
    assert str(record).startswith(f"v: column {name!r} was dropped: ")


@pytest.mark.parametrize(("name", "cells"), [("ID1", RNG.integers(0, 90, N)), ("rank", RNG.permutation(N))])
def test_measurements_that_look_like_ids_or_counters_are_kept(name, cells):
    assert encode(cells, name)[0].shape == (N, 1)


def test_a_constant_is_kept_and_said():
    values, record = encode([2.5] * N)
    assert values.shape[1] == 1
    assert (record.kind, record.action) == ("constant", "kept")


def test_a_counter_that_is_all_there_is_stays():
    assert encode_frame(pd.DataFrame({"a": np.arange(9)}), view="v").columns == ("a",)


def test_a_table_without_a_column_that_can_be_used_is_refused():
    frame = pd.DataFrame({"code": [f"s{i}" for i in range(9)], "site": "Leiden"})
    with pytest.raises(
        ValueError, match=r"^clinic.csv: view 'clinic' has no column that can be used: 'code' was dropped"
    ):
        encode_frame(frame, view="clinic", source="clinic.csv")


def test_complex_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="column 'z' holds complex numbers"):
        encode_frame(pd.DataFrame({"z": [1j, 2j]}), view="v")


def test_names_that_appear_twice_get_a_number():
    frame = pd.DataFrame(RNG.normal(size=(5, 4)), columns=["g", "g", "g.1", 7])
    assert encode_frame(frame, view="v").columns == ("g", "g.2", "g.1", "7")


def clinic(rng, n):
    return pd.DataFrame(
        {
            "code": [f"s{i}" for i in range(n)],
            "age": rng.normal(60, 9, n),
            "dose": [f"{x:.1f}".replace(".", ",") for x in rng.normal(5, 1, n)],
            "stage": rng.choice(["I", "II", "III"], n),
            "smoker": rng.choice(["yes", "no"], n),
            "seen": pd.date_range("2020-01-01", periods=n).strftime("%d.%m.%Y"),
        }
    )


def test_new_rows_become_the_same_numbers_after_a_trip_through_json():
    frame = clinic(np.random.default_rng(1), 50)
    encoded = encode_frame(frame, view="clinic")
    assert encoded.columns == ("age", "dose", "stage=I", "stage=II", "stage=III", "smoker", "seen")
    assert encoded.dropped == ("code",)
    coding = Coding.from_dict(json.loads(json.dumps(encoded.coding.to_dict())))
    assert coding == encoded.coding
    again = coding.apply(frame.iloc[10:20, ::-1].drop(columns="code"))
    np.testing.assert_array_equal(again.values, encoded.values[10:20])
    assert again.records == ()


def test_new_rows_with_values_that_were_not_there_are_said():
    frame = clinic(np.random.default_rng(1), 50)
    coding = encode_frame(frame, view="clinic").coding
    new = frame.iloc[:2].assign(stage=["IV", "I"], smoker=["maybe", "no"], age=["unknown", "61"])
    found = coding.apply(new)
    np.testing.assert_array_equal(found.values[0, [0, 2, 3, 4, 5]], [np.nan, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(found.values[1, [0, 2, 3, 4, 5]], [61, 1, 0, 0, 0])
    told = {record.name: record.message for record in found.records}
    assert "not there in the fit ('IV')" in told["stage"]
    assert "do not fit it ('maybe'); they count as missing" in told["smoker"]
    assert "'unknown'" in told["age"]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "script"},
        {"values": ["a"]},
        {"style": [",", "x"]},
        {"format": 7},
    ],
)
def test_codings_that_no_table_can_have_given_are_refused(change):
    content = encode_frame(clinic(np.random.default_rng(1), 50), view="clinic").coding.to_dict()
    content["rules"]["dose"] |= change
    with pytest.raises(ValueError, match="this is no rule for a column"):
        Coding.from_dict(content)
    with pytest.raises(ValueError, match="a rule for a column that the table does not have"):
        Coding("v", ("a",), {"b": Rule("dropped")})
    with pytest.raises(ValueError, match="has a column twice"):
        Coding("v", ("a", "a"), {})


def test_other_columns_are_refused_by_name():
    frame = clinic(np.random.default_rng(1), 50)
    coding = encode_frame(frame, view="clinic").coding
    with pytest.raises(
        ValueError, match="view 'clinic': column 'age' is missing; the fit had 6: 'code', 'age', 'dose'"
    ):
        coding.apply(frame.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="view 'clinic': column 'years' is unknown"):
        coding.apply(frame.assign(years=1.0))


def test_a_wide_table_of_numbers_is_not_read_column_by_column():
    frame = pd.DataFrame(RNG.normal(size=(50, 20_000)))
    start = time.perf_counter()
    encoded = encode_frame(frame, view="v")
    took = time.perf_counter() - start
    np.testing.assert_array_equal(encoded.values, frame.to_numpy())
    start = time.perf_counter()
    assert not any(frame[i].isna().all() for i in range(5_000))
    assert took < 4 * (time.perf_counter() - start)


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode_frame(clinic(np.random.default_rng(1), 50), view="v")


def test_numbers_below_a_limit_of_detection_are_measured_whatever_the_index():
    cells = ["<0.5" if i % 4 == 0 else f"{i / 10}" for i in range(40)]
    frame = pd.DataFrame({"crp": pd.Series(cells, index=[f"s{i}" for i in range(40)], dtype=object)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded = encode_frame(frame, view="v")
    assert encoded.columns == ("crp",)
    assert np.isnan(encoded.values[::4]).all()
