"""Make docs/images/report.png and docs/images/embedding.png: digits in three views, a tenth of them damaged.

Needs the extra ``browser`` and a Chromium; takes about a minute.
"""

import io
import shutil
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from playwright.sync_api import sync_playwright

from emvc import EMVC, plot
from emvc.datasets import corrupt_samples, make_digits_views
from emvc.report import write_report

IMAGES = Path(__file__).parent / "images"


def fit() -> EMVC:
    """Return a model of the digits, with a tenth of the samples replaced by random values in all views."""
    data = make_digits_views()
    views, _ = corrupt_samples(dict(zip(data.view_names, data.views, strict=True)), 0.1, 0)
    return EMVC(data.n_clusters, random_state=0).fit(views)


def save(png: bytes, name: str) -> None:
    """Save a picture with 256 colours."""
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, kmeans=4).save(IMAGES / name, optimize=True)


def screenshot(model: EMVC) -> bytes:
    """Return the upper part of the report at the width of a desk."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        names = [f"digit {i}" for i in range(len(model.labels_))]
        write_report(model, path, sample_ids=names, title="Handwritten digits, 10 % of them damaged")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1780}, color_scheme="light")
        page.goto(path.as_uri())
        once = model.outliers_.sum(axis=1) == 1  # wrong in one view only
        page.fill("#find", names[int(np.argmax(once * model.sample_errors_.max(axis=1)))])
        page.keyboard.press("Enter")
        picture = page.screenshot()
        browser.close()
    return picture


def main() -> None:
    """Fit once, draw twice."""
    model = fit()
    save(screenshot(model), "report.png")
    figure = Figure(figsize=(6, 4.6), layout="constrained")
    plot.embedding(model, figure.subplots())
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    save(buffer.getvalue(), "embedding.png")


if __name__ == "__main__":
    main()
