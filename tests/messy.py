"""Thirty sets of files as people have them, each with known clusters: `python tests/messy.py FOLDER` writes them."""

import argparse
import gzip
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

N_CLUSTERS = 3


@dataclass(frozen=True)
class MessySet:
    """Files of one case, the classes of their samples by the ids they have in the first file, and how it should end.

    ``ends_with`` is None where the files must be clustered as the clean ones are (possibly after the command that
    `emvc check` suggests), else a part of the one line that says what to do.
    """

    name: str
    files: list[Path]
    clean: dict[str, pd.DataFrame]
    truth: pd.Series
    ends_with: str | None = None


def clean_views(seed=0, n_samples=90):
    """Return tables of named samples in three well separated clusters, and the clusters."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(N_CLUSTERS), n_samples // N_CLUSTERS))
    names = [f"P-{i:03d}" for i in range(1, n_samples + 1)]
    views = {}
    for name, width in (("gene", 6), ("lipid", 8), ("clinic", 5)):
        centres = 5 * rng.standard_normal((N_CLUSTERS, width))
        values = (centres[labels] + rng.standard_normal((n_samples, width))).round(4)
        views[name] = pd.DataFrame(
            values, index=pd.Index(names, name="id"), columns=[f"{name}{j}" for j in range(width)]
        )
    return views, pd.Series(labels, index=names)


CASES: dict[str, Callable] = {}
ENDS: dict[str, str] = {}


def case(ends_with=None):
    """Add a function to the cases; those that cannot be clustered end with a line that holds ``ends_with``."""

    def add(write):
        CASES[write.__name__] = write
        if ends_with is not None:
            ENDS[write.__name__] = ends_with
        return write

    return add


def write_set(name, folder):
    """Write the files of one case and return what is known about them."""
    folder = Path(folder) / name
    folder.mkdir(parents=True, exist_ok=True)
    views, truth = clean_views(seed=sorted(CASES).index(name))
    changed = CASES[name](folder, views, np.random.default_rng(1))
    names = changed if isinstance(changed, list) else [path.name for path in sorted(folder.iterdir())]
    return MessySet(name, [folder / one for one in names], views, truth, ENDS.get(name))


def write_all(folder):
    """Write all cases below a folder."""
    return [write_set(name, folder) for name in CASES]


def save(views, folder, *, kind="csv", **options):
    for name, table in views.items():
        table.to_csv(folder / f"{name}.{kind}", **options)


def shuffled(table, rng):
    return table.iloc[rng.permutation(len(table))]


@case()
def header_counts_columns(folder, views, rng):
    for name, table in views.items():
        pd.DataFrame(table.to_numpy()).to_csv(folder / f"{name}.csv", index=False)


@case()
def row_numbers_alone(folder, views, rng):
    save({name: table.reset_index(drop=True) for name, table in views.items()}, folder)


@case()
def row_numbers_beside_ids(folder, views, rng):
    for name, table in views.items():
        shuffled(table, rng).reset_index().to_csv(folder / f"{name}.csv")


@case()
def numeric_subject(folder, views, rng):
    for name, table in views.items():
        numbered = table.set_axis(range(1001, 1001 + len(table))).rename_axis("subject").reset_index()
        order = [*table.columns[:2], "subject", *table.columns[2:]]  # not the first column
        shuffled(numbered, rng)[order].to_csv(folder / f"{name}.csv", index=False)


@case()
def empty_cells(folder, views, rng):
    save({name: table.mask(rng.random(table.shape) < 0.08) for name, table in views.items()}, folder)


@case()
def markers_of_missing_cells(folder, views, rng):
    markers = np.array(["NA", "?", "-", "n/a", "#N/A", "NULL"])
    for name, table in views.items():
        text = table.astype(str)
        text = text.mask(
            rng.random(table.shape) < 0.05, pd.DataFrame(rng.choice(markers, table.shape), table.index, table.columns)
        )
        text.to_csv(folder / f"{name}.csv")


@case()
def decimal_commas_and_semicolons(folder, views, rng):
    save(views, folder, sep=";", decimal=",")


@case()
def thousands_separators(folder, views, rng):
    for name, table in views.items():
        text = (table * 1000).map("{:,.2f}".format)
        text.to_csv(folder / f"{name}.csv", encoding="utf-8-sig", lineterminator="\r\n")  # as Excel does


@case()
def european_thousands(folder, views, rng):
    for name, table in views.items():
        text = (table * 1000).map("{:,.2f}".format)
        text = text.map(lambda cell: cell.replace(",", "x").replace(".", ",").replace("x", "."))
        text.to_csv(folder / f"{name}.csv", sep=";")


@case()
def dates_booleans_categories_and_text(folder, views, rng):
    clinic = views["clinic"].copy()
    clinic["visit"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, len(clinic)), unit="D")
    clinic["visit"] = clinic["visit"].dt.strftime("%d.%m.%Y")
    clinic["smoker"] = rng.choice(["yes", "no"], len(clinic))
    clinic["site"] = rng.choice(["Basel", "Oslo", "Turin"], len(clinic))
    clinic["remark"] = [f"seen by nurse {i}, {rng.choice(['fine', 'tired'])}" for i in range(len(clinic))]
    save({**views, "clinic": clinic}, folder)


@case()
def utf16_from_a_spreadsheet(folder, views, rng):
    save(views, folder, kind="txt", sep="\t", encoding="utf-16")


@case()
def latin1_names(folder, views, rng):
    views["clinic"] = views["clinic"].set_axis(["Größe", "Gewicht", "Fläche", "Säure", "Jahre"], axis=1)
    for name, table in views.items():
        table.to_csv(folder / f"{name}.csv", sep=";", encoding="latin-1")


@case()
def compressed(folder, views, rng):
    views["gene"].to_csv(folder / "gene.csv.gz")
    views["lipid"].to_csv(folder / "lipid.tsv.gz", sep="\t")
    with gzip.open(folder / "clinic.txt.gz", "wt", encoding="latin-1") as stream:
        views["clinic"].rename(columns={"clinic0": "Größe"}).to_csv(stream)


@case()
def workbooks_with_notes(folder, views, rng):
    for name, table in views.items():
        with pd.ExcelWriter(folder / f"{name}.xlsx", engine="openpyxl") as book:
            pd.DataFrame({"notes": ["measured in May", "by the core facility"]}).to_excel(
                book, sheet_name="read me", index=False
            )
            shuffled(table, rng).to_excel(book, sheet_name="data", startrow=2)
            book.sheets["data"]["A1"] = f"{name}, normalised"


@case()
def one_workbook_of_views(folder, views, rng):
    with pd.ExcelWriter(folder / "study.xlsx", engine="openpyxl") as book:
        for name, table in views.items():
            shuffled(table, rng).to_excel(book, sheet_name=name)


@case(ends_with="the sample id in row 7 is empty")
def parquet_with_a_null_id(folder, views, rng):
    for name, table in views.items():
        table.reset_index().to_parquet(folder / f"{name}.parquet")
    table = views["lipid"].reset_index()
    table.loc[7, "id"] = None
    table.to_parquet(folder / "lipid.parquet")


@case()
def parquet_with_an_index(folder, views, rng):
    for name, table in views.items():
        shuffled(table, rng).to_parquet(folder / f"{name}.parquet")


@case()
def annotated_data(folder, views, rng):
    from anndata import AnnData

    part = AnnData(
        views["gene"].to_numpy(),
        obs=pd.DataFrame(index=views["gene"].index.to_numpy()),
        var=pd.DataFrame(index=views["gene"].columns),
        obsm={"lipid": views["lipid"].to_numpy()},
    )
    part.write_h5ad(folder / "gene.h5ad")
    shuffled(views["clinic"], rng).to_csv(folder / "clinic.csv")


@case()
def modalities(folder, views, rng):
    import mudata
    from anndata import AnnData

    parts = {}
    for name, table in views.items():
        rows = shuffled(table, rng)
        parts[name] = AnnData(
            rows.to_numpy(), obs=pd.DataFrame(index=rows.index.to_numpy()), var=pd.DataFrame(index=rows.columns)
        )
    with warnings.catch_warnings(), mudata.set_options(pull_on_update=False):
        warnings.simplefilter("ignore")
        mudata.MuData(parts).write(folder / "study.h5mu")


@case()
def one_table_transposed(folder, views, rng):
    save(views, folder)
    shuffled(views["lipid"], rng).T.rename_axis("feature").to_csv(folder / "lipid.csv")


@case()
def all_tables_transposed(folder, views, rng):
    for name, table in views.items():
        shuffled(table, rng).T.to_csv(folder / f"{name}.tsv", sep="\t")


@case()
def ids_written_differently(folder, views, rng):
    write = {
        "gene": lambda name: name,
        "lipid": lambda name: name.replace("-", "_").lower(),
        "clinic": lambda name: name.replace("-", ".") + " ",
    }
    for name, table in views.items():
        shuffled(table.rename(index=write[name]), rng).to_csv(folder / f"{name}.csv")


@case(ends_with="'P-003' appears twice")
def duplicate_ids(folder, views, rng):
    save(views, folder)
    table = views["lipid"]
    pd.concat([table, table.iloc[[2]] + 1]).to_csv(folder / "lipid.csv")


@case()
def one_column_in_millions(folder, views, rng):
    counts = rng.poisson(np.exp(views["gene"].to_numpy() / 5) * 3)
    views["gene"] = pd.DataFrame(counts, views["gene"].index, views["gene"].columns)
    save({**views, "gene": views["gene"].assign(library_size=rng.integers(10**6, 5 * 10**6, len(counts)))}, folder)


@case()
def constants_and_repeated_names(folder, views, rng):
    for name, table in views.items():
        wide = table.assign(batch=1, unit="mg", empty=np.nan)
        wide.columns = [*table.columns[:-1], table.columns[0], "batch", "unit", "empty"]
        wide.to_csv(folder / f"{name}.csv")


@case()
def comments_and_titles(folder, views, rng):
    for name, table in views.items():
        text = f"# written by an instrument\n# on 2024-05-01, run 7\n{table.to_csv()}"
        (folder / f"{name}.csv").write_text(text)
    (folder / "clinic.csv").write_text(f"Clinical data\n\n{views['clinic'].to_csv()}")


@case()
def other_order_other_samples_other_id_columns(folder, views, rng):
    for name, owner in (("gene", "sample_id"), ("lipid", "Patient"), ("clinic", "Pseudonym")):
        rows = shuffled(views[name], rng).iloc[: 90 if name == "gene" else 80]
        rows.rename_axis(owner).reset_index().to_csv(folder / f"{name}.csv", index=False)


@case()
def quotes_and_mixed_separators(folder, views, rng):
    places = [f'Main Street {i}, "upper"\nfloor' for i in range(90)]
    views["gene"].assign(address=places).to_csv(folder / "gene.csv", quoting=1)
    views["lipid"].to_csv(folder / "lipid.csv", sep="|")
    views["clinic"].to_csv(folder / "clinic.csv", sep="\t")


@case(ends_with="In R, write the table with write.csv")
def saved_by_r(folder, views, rng):
    save({name: views[name] for name in ("gene", "lipid")}, folder)
    (folder / "clinic.rds").write_bytes(b"X\n\x00\x00\x00\x03")


@case()
def aligned_text(folder, views, rng):
    for name, table in views.items():
        (folder / f"{name}.txt").write_text(
            table.rename_axis(None).to_string(float_format="%.4f").replace(" " * 5, "id   ", 1)
        )


def main(arguments=None):
    """Write all cases, and a list of them with classes as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    listed = [
        {"name": one.name, "files": list(map(str, one.files)), "truth": one.truth.to_dict(), "ends_with": one.ends_with}
        for one in write_all(folder)
    ]
    (folder / "sets.json").write_text(json.dumps(listed, indent=1))
    sys.stdout.write(f"{len(listed)} sets of files in {folder}\n")


if __name__ == "__main__":
    main()
