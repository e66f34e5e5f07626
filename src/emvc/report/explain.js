// What sets clusters apart: heat map of the markers, names of clusters, samples on the map.
for (const button of document.querySelectorAll("button[data-sample]")) {
  if (!data.points) { button.replaceWith(button.textContent); continue; }
  button.addEventListener("click", () => {
    selectSample(Number(button.dataset.sample));
    $("map").scrollIntoView({ block: "center" });
    $("map").focus({ preventScroll: true });
  });
}
for (const button of document.querySelectorAll("button[data-colour]")) {
  if (!data.points) { button.replaceWith(button.textContent); continue; }
  button.addEventListener("click", () => {
    $("colour").value = button.dataset.colour;
    $("colour").dispatchEvent(new Event("change"));
    $("map").scrollIntoView({ block: "center" });
    $("colour").focus({ preventScroll: true });
  });
}

// Names live in this browser, under a key that belongs to this result.
const nameKey = "emvc-names-" + [...data.labels].reduce((sum, c) => (31 * sum + c.charCodeAt(0)) | 0, data.n);
try { Object.assign(names, JSON.parse(localStorage.getItem(nameKey) || "{}")); } catch { /* nothing was kept */ }
const rename = (c, text) => {
  const wanted = text.trim().slice(0, 60);
  if (wanted && wanted !== String(c)) names[c] = wanted; else delete names[c];
  try { localStorage.setItem(nameKey, JSON.stringify(names)); } catch { /* the page still shows them */ }
  showNames();
};
for (const button of document.querySelectorAll("button[data-rename]")) {
  button.addEventListener("click", () => {
    const c = Number(button.dataset.rename), input = make("input");
    input.value = names[c] || "";
    input.placeholder = "name, then Enter";
    input.maxLength = 60;
    input.setAttribute("aria-label", "New name of cluster " + c);
    let done = false;
    const close = (keep) => {
      if (done) return;
      done = true;
      input.replaceWith(button);
      if (keep) rename(c, input.value);
      button.focus();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // or the key would press the button that comes back
      close(event.key === "Enter");
    });
    input.addEventListener("blur", () => close(true));
    button.replaceWith(input);
    input.focus();
  });
}

if (data.markers) {
  const { rows, width, values, groups } = data.markers;
  const cells = bytes(values), canvas = $("marker-map"), list = $("marker-names"), axis = $("marker-axis"), high = 20;
  const clusters = borders(groups);
  canvas.style.height = high * rows.length + "px";
  for (const row of rows) {
    const name = make("div", row.name);
    name.title = `${row.name} (${row.view})`;
    name.style.cssText = `height:${high}px;line-height:${high}px`;
    list.append(name);
  }
  const labelled = clusters.map((g) => ({ ...g, node: axis.appendChild(make("span")) }));
  renamed.push(() => { for (const g of labelled) g.node.textContent = clusterName(g.cluster); });
  draws.push(() => {
    const [pen, w, h] = prepare(canvas);
    const colour = (x, y) => { const cell = cells[y * width + x]; return cell === MISSING ? null : ramp(colours.d, cell / 250); };
    pen.imageSmoothingEnabled = false;
    pen.drawImage(paint(canvas, pen, width, rows.length, colour), 0, 0, w, h);
    pen.fillStyle = colours.card;
    for (const { to } of clusters.slice(0, -1)) pen.fillRect(to * w - 0.75, 0, 1.5, h);
    rows.forEach((row, k) => { if (k && row.cluster !== rows[k - 1].cluster) pen.fillRect(0, k * high - 0.75, w, 1.5); });
    const left = canvas.offsetParent.offsetLeft - axis.offsetLeft;
    let free = -99;
    for (const { from, to, node } of labelled) {
      const x = left + ((from + to) / 2) * w;
      node.style.left = x + "px";
      node.hidden = x < free;
      if (!node.hidden) free = x + node.textContent.length * 7 + 10;
    }
  });
  pointing(canvas, $("marker-tip"), (x, y) => {
    const k = Math.floor(y * rows.length), cell = cells[k * width + Math.floor(x * width)], row = rows[k];
    const where = cell === MISSING ? "not known" : `larger than ${Math.round(cell / 2.5)} % of all samples`;
    return [`${row.name} (${row.view})`, "a marker of cluster " + clusterName(row.cluster), `cluster ${clusterName(groupAt(clusters, x))}: ${where}`];
  });
}
showNames();
