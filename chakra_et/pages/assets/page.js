"use strict";
// The theme: what the system prefers, until the reader chooses.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const button = document.getElementById("theme");
  function apply() {
    const theme = chosen ?? (dark.matches ? "dark" : "light");
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${theme === "dark" ? "light" : "dark"} theme`);
    document.dispatchEvent(new Event("theme"));
  }
  dark.addEventListener("change", apply);
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    apply();
  });
  apply();
})();

// Tables: sorted by a click on a head, filtered by a text.
document.querySelectorAll("table.sorts").forEach((table) => {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const cell = row.cells[place];
        return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.trim().toLowerCase();
      };
      const rows = [...body.rows].map((row) => [value(row), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      body.append(...rows.map(([, row]) => row));
    });
  });
  const filter = document.querySelector(`input[data-table="${table.id}"]`);
  if (!filter) return;
  const told = document.getElementById(`${table.id}-told`);
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    told.textContent = wanted ? `${shown} of ${body.rows.length} rows` : "";
  });
});
