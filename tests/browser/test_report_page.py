"""A report in a browser: it draws, zooms, finds, sorts, and asks nobody for anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Browser
from places import EXAMPLES, ROOT
from runs import built, straggler
from traces import node, trace

from chakra_et.files import write
from chakra_et.pages import write_report
from chakra_et.pages.simulated import write_comparison
from chakra_et.replay import replay
from chakra_et.simulation import compare, read_astra_log

pytest.importorskip("selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page about two ranks of training."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(EXAMPLES / "ddp_2rank", path)
    return path


RESET = """
for (const [id, value, event] of [["find", "", "input"], ["of-rank", "all", "change"]]) {
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event(event));
}
document.getElementById("see-all").click();
document.getElementById("details").textContent = "";
"""


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    """The page with its whole timeline; opening it anew for each test would take a second."""
    if browser.run("return location.href + innerWidth") != f"{page.as_uri()}1280":
        browser.open(page)
    browser.run(RESET)
    return browser


def width(browser: Browser) -> float:
    begin, end = browser.range()
    return end - begin


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [1280, 420])
def test_it_opens_without_an_error_and_without_a_request(
    browser: Browser, page: Path, size: int, dark: bool
) -> None:
    browser.open(page, size, dark=dark)
    assert browser.errors() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run("return document.documentElement.dataset.theme") == (
        "dark" if dark else "light"
    )
    # Tables scroll in their own frames, and never the page.
    assert browser.run("return document.documentElement.scrollWidth") <= size
    assert browser.run("return document.querySelector('#chart .bk-Figure') !== null")


def test_the_theme_changes_by_a_click(opened: Browser) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    theme = "return document.documentElement.dataset.theme"
    before = opened.run(theme), opened.run(ground)
    opened.click("#theme")
    assert {before[0], opened.run(theme)} == {"light", "dark"}
    assert opened.run(ground) != before[1]
    assert before[0] in str(opened.find("#theme").get_attribute("aria-label"))


def test_buttons_zoom_and_move(opened: Browser) -> None:
    whole = width(opened)
    opened.click("#zoom-in")
    assert width(opened) == pytest.approx(whole / 2)
    before = opened.range()[0]
    opened.click("#pan-right")
    assert opened.range()[0] == pytest.approx(before + whole / 8)
    opened.click("#zoom-out")
    opened.click("#see-all")
    assert opened.range() == (0, pytest.approx(whole))


def test_keys_zoom_and_move(opened: Browser) -> None:
    whole = width(opened)
    chart = opened.find("#chart")
    chart.send_keys("+")
    assert width(opened) == pytest.approx(whole / 2)
    before = opened.range()[0]
    chart.send_keys(Keys.ARROW_LEFT)
    assert opened.range()[0] == pytest.approx(before - whole / 8)
    chart.send_keys("0")
    assert width(opened) == pytest.approx(whole)


def test_the_wheel_zooms_where_it_points(opened: Browser) -> None:
    chart = opened.find("#chart")
    whole = width(opened)
    opened.run(
        "const c = arguments[0], box = c.getBoundingClientRect();"
        "c.dispatchEvent(new WheelEvent('wheel', {deltaY: -300, ctrlKey: true, bubbles: true,"
        "cancelable: true, clientX: box.right - 12, clientY: box.top + 20}))",
        chart,
    )
    assert width(opened) < whole / 2
    assert opened.range()[1] == pytest.approx(whole, rel=0.02)


def test_drawing_with_the_mouse_moves_the_window(opened: Browser) -> None:
    opened.click("#zoom-in")
    before = opened.range()
    opened.run("arguments[0].scrollIntoView({block: 'center'})", opened.find("#chart"))
    drag = ActionChains(opened.driver).move_to_element(opened.find("#chart"))
    drag.click_and_hold().move_by_offset(-150, 0).release().perform()
    opened.wait(f"return chakraTimeline.range()[0] > {before[0]}")
    assert width(opened) == pytest.approx(before[1] - before[0])


def test_a_click_on_an_operation_says_what_it_is(opened: Browser) -> None:
    chart = opened.find("#chart")
    opened.run("arguments[0].scrollIntoView({block: 'center'})", chart)
    size = chart.size
    # The middle of the first lane, which is a host thread.
    point = ActionChains(opened.driver).move_to_element_with_offset(
        chart, 0, -size["height"] // 2 + 20
    )
    point.click().perform()
    opened.wait("return document.getElementById('details').textContent !== ''")
    told = opened.text("#details")
    assert "rank 0, thread" in told
    assert "chakra info trace.0.et --node" in told


def test_the_table_below_follows_the_window(opened: Browser) -> None:
    assert opened.text("#window").startswith("Whole window, all ranks")
    Select(opened.find("#of-rank")).select_by_value("1")
    opened.wait("return document.getElementById('window').textContent.includes('rank 1')")
    rows = opened.run("return document.getElementById('in-window').rows.length")
    assert rows == 10
    step = Select(opened.find("#of-step"))
    step.select_by_index(2)
    opened.wait("return !document.getElementById('window').textContent.startsWith('Whole')")


def test_finding_counts_and_dims(opened: Browser) -> None:
    opened.find("#find").send_keys("aten::mm")
    opened.wait("return document.getElementById('found').textContent.endsWith('found')")
    assert int(opened.text("#found").split()[0].replace(",", "")) > 0
    opened.find("#find").clear()
    opened.find("#find").send_keys("no such operator")
    opened.wait("return document.getElementById('found').textContent === '0 found'")


def test_the_path_can_be_walked(opened: Browser) -> None:
    whole = width(opened)
    opened.click("#path-next")
    assert width(opened) < whole / 2
    told = opened.text("#details")
    opened.find("#chart").send_keys("n")
    assert opened.text("#details") != told
    opened.find("#chart").send_keys("p")
    assert opened.text("#details") == told


def test_a_row_of_the_path_leads_into_the_timeline(opened: Browser) -> None:
    whole = width(opened)
    opened.click("#path-longest button[data-from]")
    assert width(opened) < whole / 2
    assert opened.run("return document.activeElement.id") == "chart"


def test_a_head_sorts_and_a_filter_hides(opened: Browser) -> None:
    heads = opened.run(
        "return [...document.querySelectorAll('#operators-table th')].map(h => h.innerText)"
    )
    place = heads.index("calls")
    opened.click(f"#operators-table th:nth-child({place + 1}) button")
    values = opened.run(
        f"return [...document.querySelectorAll('#operators-table tbody tr')]"
        f".map(r => Number(r.cells[{place}].dataset.v))"
    )
    assert values == sorted(values, reverse=True)
    head = opened.find(f"#operators-table th:nth-child({place + 1})")
    assert head.get_attribute("aria-sort") == "descending"
    opened.find('input[data-table="operators-table"]').send_keys("aten::mm")
    shown = opened.run(
        "return [...document.querySelectorAll('#operators-table tbody tr:not([hidden])')]"
        ".map(r => r.cells[0].textContent)"
    )
    assert shown
    assert all("aten::mm" in name for name in shown)
    assert opened.text("#operators-table-told").startswith(f"{len(shown)} of")


def test_the_keyboard_reaches_all_and_first_a_way_past_the_links(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.find("body").send_keys(Keys.TAB)
    assert browser.run("return document.activeElement.className") == "skip"
    reached = set()
    for _ in range(60):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        reached.add(browser.run("return document.activeElement.id"))
    assert {"theme", "of-rank", "zoom-in", "find", "chart"} <= reached


def test_names_of_a_trace_run_nothing(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=1'>"
    nodes = [node(i, took=1_000_000, start=1_000_000 * i, name=f"{evil}{i}") for i in range(3)]
    write(trace(*nodes, rank=0, groups={evil: (0,)}), tmp_path / "trace.0.et")
    write_report(tmp_path / "trace.0.et", tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.click("#path-next")
    assert evil in browser.text("#in-window")
    assert browser.run("return window.pwned === undefined && document.images.length === 0")
    assert browser.errors() == []
    assert browser.requests() == [(tmp_path / "page.html").as_uri()]


def test_a_simulated_run_is_drawn_beside_the_recorded_one(browser: Browser, tmp_path: Path) -> None:
    traces = replay(built(straggler)).traces
    found = compare(traces, read_astra_log(ROOT / "tests" / "simulation" / "straggler.log"))
    write_comparison(traces, found, "straggler", tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert "0.80 times as long" in browser.text("#verdict")
    Select(browser.find("#of-rank")).select_by_value("1 sim")
    browser.wait("return document.getElementById('window').textContent.includes('rank 1 sim')")
    assert browser.text("#in-window tr") == "gemm device 1 8 ms"
    assert browser.errors() == []
