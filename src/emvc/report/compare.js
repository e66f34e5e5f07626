// Two runs side by side: who moved, as a table in pages, and as a file.
const body = $("moved").tBodies[0], rows = data.rows.map(([sample, from, to]) => ({ sample, from, to, text: [sample, from, to].join("\n").toLowerCase() }));
const PER_PAGE = 20;
let found = rows, page = 0, perPage = PER_PAGE;
const fill = () => {
  const pages = Math.max(1, Math.ceil(found.length / perPage));
  page = Math.min(Math.max(page, 0), pages - 1);
  body.replaceChildren(...found.slice(page * perPage, (page + 1) * perPage).map((row) => {
    const line = make("tr");
    line.append(make("td", row.sample), make("td", row.from), make("td", row.to));
    return line;
  }));
  $("matches").textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} samples`;
  $("page-number").textContent = `page ${page + 1} of ${pages}`;
  $("previous").disabled = page === 0;
  $("next").disabled = page === pages - 1;
};
$("search").addEventListener("input", () => {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  found = rows.filter((row) => words.every((word) => row.text.includes(word)));
  page = 0;
  fill();
});
for (const button of document.querySelectorAll("button[data-from]")) {
  button.addEventListener("click", () => {
    found = rows.filter((row) => row.from === button.dataset.from && row.to === button.dataset.to);
    $("search").value = "";
    page = 0;
    fill();
    $("moved").scrollIntoView({ block: "nearest" });
  });
}
$("previous").addEventListener("click", () => { page--; fill(); });
$("next").addEventListener("click", () => { page++; fill(); });
$("save").addEventListener("click", () => saveTable("moved.csv", ["sample", ...data.runs], found.map((row) => [row.sample, row.from, row.to])));
window.addEventListener("beforeprint", () => { perPage = 200; fill(); });
window.addEventListener("afterprint", () => { perPage = PER_PAGE; fill(); });
fill();
