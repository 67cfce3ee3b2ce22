"""Make the pictures of docs/pages.md anew, each by the commands that stand beside it there.

    python tools/make_pictures.py [NAME...] [--log DIR]

A picture is a part of a page in Chromium without a window, in few colours. Real traces are found
through CHAKRA_ET_DATA. The simulated run needs the log of a simulator, and is left out without.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from browsing import Browser, chromium, missing
from PIL import Image
from traces_index import DATA

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
COLOURS = 256
MOST_BYTES = 150_000


@dataclass(frozen=True)
class Picture:
    """A picture of `page`, which `commands` make; from `section` on, and so many pixels.

    `script` is run in the page before.
    """

    name: str
    commands: tuple[str, ...]
    page: str
    width: int
    height: int
    section: str = "overview"
    dark: bool = False
    script: str = ""


DLRM = ("chakra report dlrm8/ -o dlrm.html",)
DDP = ("chakra report examples/ddp_2rank -o ddp.html",)
PIPELINE = (
    "chakra generate llm --model llama3-70b --tp 8 --pp 4 --dp 2 -o set/",
    "chakra report set/ -o set.html --network 5,100",
)
SIMULATED = (
    "chakra convert dlrm8/ --for astra-sim -o fed/",
    "chakra compare-sim fed/ log/ -o sim.html",
)
ALL = (
    Picture("report", DLRM, "dlrm.html", 1280, 1330),
    Picture(
        "path", DLRM, "dlrm.html", 1280, 760, "timeline", True,
        "const rank = document.getElementById('of-rank'); rank.value = '7';"
        "rank.dispatchEvent(new Event('change'));"
        "for (const id of ['zoom-in', 'pan-right']) document.getElementById(id).click();",
    ),
    Picture("processors", DDP, "ddp.html", 1280, 640),
    Picture("pipeline", PIPELINE, "set.html", 1280, 1000, "timeline"),
    Picture("narrow", DLRM, "dlrm.html", 420, 900),
    Picture("simulated", SIMULATED, "sim.html", 1280, 1000, "timeline"),
)  # fmt: skip


def main() -> int:
    """Make the pictures; 0 if all went well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which pictures; all by default")
    parser.add_argument("--log", type=Path, help="what ASTRA-sim logged of the DLRM run")
    given = parser.parse_args()
    problem = missing()
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium(Path(name) / "profile") as browser:
        folder = workplace(Path(name) / "work", given.log)
        for picture in ALL:
            if given.names and picture.name not in given.names:
                continue
            if picture.commands == SIMULATED and given.log is None:
                print(f"{picture.name}: left out without --log")
                continue
            make_page(picture, folder)
            save(browser, picture, folder / picture.page)
    return 0


def workplace(folder: Path, log: Path | None) -> Path:
    """A directory in which the commands run as they stand in the documentation."""
    folder.mkdir()
    (folder / "dlrm8").symlink_to(DATA / "dlrm8")
    (folder / "examples").symlink_to(ROOT / "examples")
    if log is not None:
        shutil.copytree(log, folder / "log")
    return folder


def make_page(picture: Picture, folder: Path) -> None:
    """Run the commands of a picture, unless its page is there."""
    if (folder / picture.page).exists():
        return
    for command in picture.commands:
        words = [sys.executable, "-m", "chakra_et.cli", *command.split()[1:]]
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def save(browser: Browser, picture: Picture, page: Path) -> None:
    """Take the picture."""
    browser.open(page, picture.width, dark=picture.dark, height=picture.height)
    if picture.script:
        browser.run(picture.script)
    browser.run(
        "const place = document.getElementById(arguments[0]).getBoundingClientRect().top;"
        "scrollTo(0, arguments[0] === 'overview' ? 0 : place + scrollY - 50)",
        picture.section,
    )
    time.sleep(0.6)
    image = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
    path = PICTURES / f"{picture.name}.png"
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {image.width} x {image.height}, {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} is larger than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
