// The report about one model: map, heat maps, table of suspicious samples.
const K = data.views.length;
const labels = typed(data.labels, Int32Array);
const level = bytes(data.level);
const index = data.index && typed(data.index, Uint32Array);
const errors = data.errors && bytes(data.errors);
const MISSING = 255;
const idOf = (i) => (data.ids ? data.ids[i] : String(index ? index[i] : i));
const names = data.names || {};
const clusterName = (c) => (c < 0 ? "none" : names[c] || String(c));
const renamed = []; // what is to be written anew when a cluster gets another name
const errorOf = (i, k) => (errors[i * K + k] === MISSING ? NaN : errors[i * K + k] / 250);
const worstOf = (i) => {
  let worst = NaN;
  for (let k = 0; k < K; k++) { const e = errorOf(i, k); if (data.reliable[k] && !(e <= worst) && !isNaN(e)) worst = e; }
  return worst;
};
// After ten colours the shape changes: circle, square, triangle, diamond.
const shapeOf = (c) => (c < 0 ? 0 : Math.floor(c / 10) % 4);
const trace = (pen, x, y, r, shape) => {
  if (shape === 0) { pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 2 * Math.PI); }
  else if (shape === 1) pen.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else {
    const corners = shape === 2 ? [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]] : [[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]];
    corners.forEach(([a, b], k) => pen[k ? "lineTo" : "moveTo"](x + a * r, y + b * r));
    pen.closePath();
  }
};
const verdictOf = (i) =>
  ["", "suspicious, kept", "left out of some views", "not believed in any view"][level[i]];

// ---- map of the samples
let selectSample = () => {};
if (data.points) {
  const canvas = $("map"), tip = $("tip"), legend = $("legend");
  const points = typed(data.points, Uint16Array);
  const groups = [...new Set(labels)].sort((a, b) => (a < 0) - (b < 0) || a - b);
  const members = new Map(groups.map((c) => [c, []]));
  for (let i = 0; i < data.n; i++) members.get(labels[i]).push(i);
  const order = groups.flatMap((c) => members.get(c));
  const rank = new Map(order.map((i, r) => [i, r]));
  const selected = new Set();
  let area = null;
  let isolated = null, current = -1, pinned = false, xs = new Float32Array(data.n), ys = new Float32Array(data.n);
  const stability = data.stability ? typed(data.stability, Uint8Array) : null;
  const mode = () => $("colour").value;
  const extra = (data.colours || []).map((column) => ({ ...column, values: bytes(column.values) }));
  const chosen = () => (mode().startsWith("x") ? extra[Number(mode().slice(1))] : null);
  const colourOf = (i) => {
    const column = chosen();
    if (column) {
      const value = column.values[i];
      if (value === MISSING) return colours.missing;
      return column.levels ? colours.clusters[value % 10] : rampColour(value / 250);
    }
    if (mode() === "stability") return rampColour(stability[i] === 255 ? NaN : 1 - stability[i] / 250);
    if (mode() === "cluster" || !errors) return clusterColour(labels[i]);
    return rampColour(mode() === "worst" ? worstOf(i) : errorOf(i, Number(mode())));
  };
  const visible = (i) => isolated === null || labels[i] === isolated;
  const showLevels = (column) => {
    const list = $("map-levels");
    list.hidden = !(column && column.levels);
    list.replaceChildren(...(list.hidden ? [] : column.levels).map((text, k) => {
      const item = make("span"), mark = make("span", undefined, "dot-mark colour" + (k % 10));
      item.append(mark, text);
      return item;
    }));
  };
  const draw = () => {
    const column = chosen();
    const bar = column ? [column.low, column.high]
      : mode() === "stability" ? ["1 always keeps its cluster", "0 never"] : ["0 usual", "1 wrong"];
    $("map-scale").hidden = mode() === "cluster" || Boolean(column && column.levels);
    showLevels(column);
    $("map-low").textContent = bar[0];
    $("map-high").textContent = bar[1];
    const [pen, w, h] = prepare(canvas);
    const pad = 18, side = Math.min(w, h) - 2 * pad;
    // A wide canvas may stretch the map by half: it has no units.
    const sx = Math.min(w - 2 * pad, 1.5 * side), sy = Math.min(h - 2 * pad, 1.3 * side);
    const ox = (w - sx) / 2, oy = (h - sy) / 2;
    const r = Math.max(1.6, Math.min(5, 150 / Math.sqrt(data.n)));
    for (let i = 0; i < data.n; i++) {
      xs[i] = ox + (sx * points[2 * i]) / 65535;
      ys[i] = oy + sy * (1 - points[2 * i + 1] / 65535);
    }
    pen.clearRect(0, 0, w, h);
    // Marks of one colour are drawn at once; the faded ones first, the suspicious ones last.
    const batches = new Map();
    for (let i = 0; i < data.n; i++) {
      const layer = visible(i) ? (level[i] >= 2 ? 2 : 1) : 0;
      const colour = layer ? colourOf(i) : colours.line;
      const key = layer + colour + (layer === 2 ? level[i] : 0);
      if (!batches.has(key)) batches.set(key, { layer, colour, kind: level[i], list: [] });
      batches.get(key).list.push(i);
    }
    for (const { layer, colour, kind, list } of [...batches.values()].sort((a, b) => a.layer - b.layer)) {
      pen.beginPath();
      pen.globalAlpha = layer === 0 ? 0.5 : layer === 1 ? 0.85 : 1;
      for (const i of list) {
        if (layer === 2 && kind === 3) {
          const s = r + 1;
          pen.moveTo(xs[i] - s, ys[i] - s); pen.lineTo(xs[i] + s, ys[i] + s);
          pen.moveTo(xs[i] + s, ys[i] - s); pen.lineTo(xs[i] - s, ys[i] + s);
        } else trace(pen, xs[i], ys[i], layer === 2 ? r + 1 : r, shapeOf(labels[i]));
      }
      if (layer === 2) { pen.strokeStyle = colour; pen.lineWidth = 1.5; pen.stroke(); }
      else { pen.fillStyle = colour; pen.fill(); }
    }
    pen.globalAlpha = 1;
    pen.font = "600 14px system-ui, sans-serif";
    pen.textAlign = "center"; pen.textBaseline = "middle"; pen.lineWidth = 4; pen.lineJoin = "round";
    const middle = (list, values) => list.map((i) => values[i]).sort((a, b) => a - b)[list.length >> 1];
    for (const c of groups) {
      const believed = members.get(c).filter((i) => level[i] < 3);
      if (c < 0 || !believed.length || (isolated !== null && c !== isolated)) continue;
      // A number must not hide the marks of a small cluster.
      const x = middle(believed, xs), y = middle(believed, ys) - (believed.length < 6 ? r + 12 : 0);
      pen.strokeStyle = colours.card; pen.strokeText(clusterName(c), x, y);
      pen.fillStyle = colours.ink; pen.fillText(clusterName(c), x, y);
    }
    if (selected.size) {
      pen.beginPath(); pen.lineWidth = 2; pen.strokeStyle = colours.accent;
      for (const i of selected) { pen.moveTo(xs[i] + r + 3, ys[i]); pen.arc(xs[i], ys[i], r + 3, 0, 2 * Math.PI); }
      pen.stroke();
    }
    if (area) {
      pen.lineWidth = 1; pen.strokeStyle = colours.accent;
      pen.strokeRect(area[0], area[1], area[2] - area[0], area[3] - area[1]);
    }
    if (current >= 0) {
      pen.beginPath(); pen.lineWidth = 2.5; pen.strokeStyle = colours.ink;
      pen.arc(xs[current], ys[current], r + 5, 0, 2 * Math.PI); pen.stroke();
    }
  };
  const show = (i) => {
    if (i === current && (i < 0) === tip.hidden) return;
    current = i;
    draw();
    if (i < 0) { tip.hidden = true; tip.replaceChildren(); return; }
    tip.replaceChildren(make("b", idOf(i)), make("div", "cluster " + clusterName(labels[i])));
    if (level[i]) tip.append(make("div", verdictOf(i)));
    for (let k = 0; errors && k < Math.min(K, 12); k++) {
      const e = errorOf(i, k), row = make("div", undefined, "row" + (e >= 0.5 ? " high" : "")), bar = make("i"), fill = make("i");
      fill.style.width = (isNaN(e) ? 0 : 100 * e) + "%";
      bar.append(fill);
      row.append(make("span", data.views[k]), bar, make("span", isNaN(e) ? "–" : e.toFixed(2)));
      tip.append(row);
    }
    const column = chosen();
    if (column) tip.append(make("div", column.name + ": " + valueOf(column, i)));
    place(tip, canvas, xs[i], ys[i]);
  };
  const valueOf = (column, i) => {
    const value = column.values[i];
    if (value === MISSING) return "not known";
    return column.levels ? column.levels[value] : `${Math.round(value / 2.5)} % of the way from ${column.low} to ${column.high}`;
  };
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const reach = event.pointerType === "touch" ? 28 : 14;
    let best = -1, least = reach * reach;
    for (let i = 0; i < data.n; i++) {
      const d = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
      if (d < least && visible(i)) { least = d; best = i; }
    }
    return best;
  };
  canvas.addEventListener("pointermove", (e) => { if (!pinned) show(nearest(e)); });
  canvas.addEventListener("pointerleave", () => { if (!pinned) show(-1); });
  canvas.addEventListener("click", (e) => { const i = nearest(e); pinned = i >= 0; show(i); });
  canvas.addEventListener("keydown", (event) => {
    const list = isolated === null ? order : members.get(isolated);
    const at = current < 0 ? -1 : isolated === null ? rank.get(current) : list.indexOf(current);
    const group = current < 0 ? -1 : groups.indexOf(labels[current]);
    const turn = (step) => members.get(groups[(group + step + groups.length) % groups.length])[0];
    const moves = {
      ArrowRight: () => list[(at + 1) % list.length],
      ArrowLeft: () => list[at <= 0 ? list.length - 1 : at - 1],
      ArrowDown: () => (isolated === null ? turn(1) : list[0]),
      ArrowUp: () => (isolated === null ? turn(group < 0 ? 0 : -1) : list[list.length - 1]),
      Home: () => list[0], End: () => list[list.length - 1], Escape: () => -1,
    };
    if ((event.key === "Enter" || event.key === " ") && current >= 0) { event.preventDefault(); toggle([current]); return; }
    if (!moves[event.key]) return;
    event.preventDefault();
    pinned = event.key !== "Escape";
    show(moves[event.key]());
  });
  const isolate = (c) => {
    isolated = c;
    for (const button of legend.children) button.setAttribute("aria-pressed", String(c !== null && button.dataset.cluster === String(c)));
    pinned = false; show(-1); draw(); tellSelection();
  };

  // Samples are selected by a rectangle, or one by one with Enter on the keyboard, and saved by the browser.
  const toggle = (list) => {
    const all = list.every((i) => selected.has(i));
    for (const i of list) if (all) selected.delete(i); else selected.add(i);
    draw(); tellSelection();
  };
  const toSave = () => (selected.size ? [...selected].sort((a, b) => a - b) : [...Array(data.n).keys()].filter(visible));
  const tellSelection = () => {
    const what = selected.size ? "selection" : isolated === null ? "all" : "cluster " + clusterName(isolated);
    $("save").textContent = `Save as CSV: ${what}, ${toSave().length.toLocaleString("en")} samples`;
    $("clear").disabled = !selected.size;
  };
  $("save").addEventListener("click", () => {
    const column = chosen();
    const header = ["sample", "cluster", "name", "verdict", ...(errors ? data.views.map((v) => "error " + v) : []), ...(column ? [column.name] : [])];
    saveTable("samples.csv", header, toSave().map((i) => [
      idOf(i), labels[i], names[labels[i]] || "", verdictOf(i) || "usual",
      ...(errors ? data.views.map((_, k) => (isNaN(errorOf(i, k)) ? "" : errorOf(i, k).toFixed(3))) : []),
      ...(column ? [column.values[i] === MISSING ? "" : column.levels ? column.levels[column.values[i]] : column.exact ? column.exact[i] : (column.values[i] / 250).toFixed(3)] : []),
    ]));
  });
  $("clear").addEventListener("click", () => { selected.clear(); draw(); tellSelection(); });
  $("area").addEventListener("click", () => {
    const on = $("area").getAttribute("aria-pressed") !== "true";
    $("area").setAttribute("aria-pressed", String(on));
    canvas.style.touchAction = on ? "none" : "";
  });
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    if ($("area").getAttribute("aria-pressed") !== "true") return;
    canvas.setPointerCapture(event.pointerId);
    area = [...at(event), ...at(event)];
  });
  canvas.addEventListener("pointermove", (event) => { if (area) { area.splice(2, 2, ...at(event)); draw(); } });
  canvas.addEventListener("pointerup", () => {
    if (!area) return;
    const [x0, x1] = [area[0], area[2]].sort((a, b) => a - b), [y0, y1] = [area[1], area[3]].sort((a, b) => a - b);
    area = null;
    const inside = [...Array(data.n).keys()].filter((i) => visible(i) && xs[i] >= x0 && xs[i] <= x1 && ys[i] >= y0 && ys[i] <= y1);
    for (const i of inside) selected.add(i);
    draw(); tellSelection();
  });
  for (const c of groups) {
    const button = make("button");
    button.type = "button";
    button.dataset.cluster = c;
    button.setAttribute("aria-pressed", "false");
    const canvasMark = document.createElement("canvas");
    canvasMark.width = canvasMark.height = 32;
    canvasMark.className = "mark";
    canvasMark.setAttribute("aria-hidden", "true");
    canvasMark.style.cssText = "width:1rem;height:1rem;flex:none";
    const called = make("span");
    renamed.push(() => { called.textContent = c < 0 ? "no cluster" : (names[c] ? "" : "cluster ") + clusterName(c); });
    button.append(canvasMark, called, make("small", members.get(c).length.toLocaleString("en")));
    button.addEventListener("click", () => isolate(isolated === c ? null : c));
    legend.append(button);
  }
  const drawLegend = () => {
    for (const button of legend.children) {
      const c = Number(button.dataset.cluster), pen = button.firstChild.getContext("2d");
      pen.clearRect(0, 0, 32, 32); pen.beginPath(); pen.fillStyle = clusterColour(c);
      trace(pen, 16, 16, 10, shapeOf(c)); pen.fill();
    }
  };
  $("reset").addEventListener("click", () => { $("find").value = ""; $("colour").value = "cluster"; isolate(null); });
  $("colour").addEventListener("change", draw);
  const find = () => {
    const wanted = $("find").value.trim().toLowerCase();
    if (!wanted) return;
    const all = [...Array(data.n).keys()], name = (i) => idOf(i).toLowerCase();
    const found = [(i) => name(i) === wanted, (i) => name(i).startsWith(wanted), (i) => name(i).includes(wanted)]
      .map((test) => all.find(test)).find((i) => i !== undefined);
    if (found === undefined) {
      pinned = true; show(-1);
      tip.replaceChildren(make("b", "No sample of that name."));
      place(tip, canvas, 0, 0);
    } else selectSample(found);
  };
  $("find").addEventListener("change", find);
  $("find").addEventListener("keydown", (e) => { if (e.key === "Enter") find(); });
  selectSample = (i) => {
    if (!visible(i)) isolate(null);
    pinned = true; show(i);
  };
  draws.push(drawLegend, draw);
  renamed.push(tellSelection, draw);
}

// ---- heat maps
const paint = (canvas, pen, width, height, value) => {
  const image = pen.createImageData(width, height);
  const missing = rgb(colours.missing);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
    const [r, g, b] = value(x, y) || missing;
    image.data.set([r, g, b, 255], 4 * (y * width + x));
  }
  const small = document.createElement("canvas");
  small.width = width; small.height = height;
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
};
const borders = (groups) => {
  const total = groups.reduce((sum, [, size]) => sum + size, 0);
  let start = 0;
  return groups.map(([cluster, size]) => ({ cluster, from: start / total, to: (start += size) / total }));
};
const groupAt = (list, share) => (list.find((g) => share < g.to) || list[list.length - 1]).cluster;
const pointing = (canvas, tip, tell) => {
  const move = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const lines = tell(Math.min(Math.max(x / box.width, 0), 0.9999), Math.min(Math.max(y / box.height, 0), 0.9999));
    tip.replaceChildren(...lines.map((line, k) => make(k ? "div" : "b", line)));
    place(tip, canvas, x, y);
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", move);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
};
if (data.consensus) {
  const { width, height, values, top } = data.consensus;
  const cells = bytes(values), canvas = $("consensus-map");
  const rows = borders(data.consensus.rows), columns = borders(data.consensus.columns);
  draws.push(() => {
    const [pen, w, h] = prepare(canvas);
    pen.imageSmoothingEnabled = w < width;
    pen.drawImage(paint(canvas, pen, width, height, (x, y) => ramp(colours.s, cells[y * width + x] / 255)), 0, 0, w, h);
    pen.strokeStyle = colours.soft; pen.globalAlpha = 0.5; pen.lineWidth = 0.75;
    pen.beginPath();
    if (rows.length <= 60) for (const { to } of rows.slice(0, -1)) { pen.moveTo(0, to * h); pen.lineTo(w, to * h); }
    if (columns.length <= 60) for (const { to } of columns.slice(0, -1)) { pen.moveTo(to * w, 0); pen.lineTo(to * w, h); }
    pen.stroke();
    pen.globalAlpha = 1;
  });
  pointing(canvas, $("consensus-tip"), (x, y) => {
    const value = (top * cells[Math.floor(y * height) * width + Math.floor(x * width)] / 255) ** 2;
    return [`cluster ${clusterName(groupAt(rows, y))} → cluster ${clusterName(groupAt(columns, x))}`,
      `about ${value < 10 ? value.toFixed(1) : Math.round(value)} times the average link`];
  });
}
if (data.heat && K) {
  const { width, values, who, groups } = data.heat;
  const cells = bytes(values), owners = typed(who, Int32Array), canvas = $("heat");
  const clusters = borders(groups), names = $("heat-names"), axis = $("heat-axis");
  const high = Math.max(14, Math.min(34, Math.round(300 / K)));
  canvas.style.height = high * K + "px";
  for (const view of data.views) {
    const name = make("div", view);
    name.title = view;
    name.style.cssText = `height:${high}px;line-height:${high}px` + (high < 16 ? ";font-size:.7rem" : "");
    names.append(name);
  }
  const labelled = clusters.map((g) => ({ ...g, node: axis.appendChild(make("span")) }));
  renamed.push(() => { for (const g of labelled) g.node.textContent = clusterName(g.cluster); });
  draws.push(() => {
    const [pen, w, h] = prepare(canvas);
    // Fewer pixels than columns: the worst of those that share a pixel is shown, never their mean.
    const columns = Math.min(width, Math.floor(w));
    const worst = (x, k) => {
      let most = -1;
      for (let c = Math.floor((x * width) / columns); c < Math.ceil(((x + 1) * width) / columns); c++) {
        const cell = cells[k * width + c];
        if (cell !== MISSING) most = Math.max(most, cell);
      }
      return most < 0 ? null : ramp(colours.e, most / 250);
    };
    pen.imageSmoothingEnabled = false;
    pen.drawImage(paint(canvas, pen, columns, K, worst), 0, 0, w, h);
    pen.fillStyle = colours.card;
    for (let k = 1; k < K; k++) pen.fillRect(0, k * high - 0.5, w, 1);
    for (const { to } of clusters.slice(0, -1)) pen.fillRect(to * w - 0.75, 0, 1.5, h);
    const left = canvas.offsetParent.offsetLeft - axis.offsetLeft;
    let free = -99;
    for (const { from, to, node } of labelled) {
      const x = left + ((from + to) / 2) * w;
      node.style.left = x + "px";
      node.hidden = x < free;
      if (!node.hidden) free = x + node.textContent.length * 7 + 10;
    }
  });
  pointing(canvas, $("heat-tip"), (x, y) => {
    const k = Math.floor(y * K), at = k * width + Math.floor(x * width);
    const value = cells[at] === MISSING ? "missing" : "error " + (cells[at] / 250).toFixed(2);
    return [owners[at] < 0 ? "a sample" : idOf(owners[at]), "cluster " + clusterName(groupAt(clusters, x)), `${data.views[k]}: ${value}`];
  });
}

// ---- table of suspicious samples
if ($("table")) {
  const body = $("table").tBodies[0], heads = [...$("table").tHead.rows[0].cells];
  const rows = data.rows.map(([i, condemned, total, ...entries]) => {
    const worst = entries.reduce((a, b) => (b[1] > a[1] ? b : a));
    const whys = new Map();
    for (const [view, , , reason, probability] of entries) {
      if (!whys.has(reason)) whys.set(reason, []);
      whys.get(reason).push([data.views[view], probability]);
    }
    const named = (list) => list.map(([view, d]) => view + (d === null ? "" : ` (${d.toFixed(1)})`)).join(", ");
    const brief = (list) => {
      const known = list.map((e) => e[1]).filter((d) => d !== null);
      if (list.length < K || K < 4) return named(list);
      return `all ${K} views` + (known.length ? ` (${Math.min(...known).toFixed(1)} to ${Math.max(...known).toFixed(1)})` : "");
    };
    const tell = (how) => [...whys].map(([reason, list]) => `${data.reasons[reason] || "large error"}: ${how(list)}`).join("; ") +
      (total > entries.length ? `; and ${total - entries.length} more views` : "");
    const why = tell(brief);
    const verdict = level[i] === 3 ? verdictOf(i) : condemned ? `left out of ${condemned} of ${K} views` : verdictOf(i);
    const row = { i, sample: idOf(i), cluster: labels[i], verdict, view: data.views[worst[0]], error: worst[1], why, rank: level[i] * 1000 + condemned };
    renamed.push(() => { row.text = searched(); });
    const searched = () => [row.sample, "cluster " + clusterName(row.cluster), verdict, row.view, tell(named)].join("\n").toLowerCase();
    row.text = searched();
    return row;
  });
  const natural = new Intl.Collator("en", { numeric: true }).compare;
  const compare = {
    sample: (a, b) => natural(a.sample, b.sample), cluster: (a, b) => a.cluster - b.cluster,
    verdict: (a, b) => a.rank - b.rank, view: (a, b) => natural(a.view, b.view),
    error: (a, b) => a.error - b.error, why: (a, b) => natural(a.why, b.why),
  };
  const usual = matchMedia("(max-width: 46rem)").matches ? 8 : 20;
  let key = "verdict", sign = -1, page = 0, perPage = usual, found = rows;
  const fill = () => {
    const pages = Math.max(1, Math.ceil(found.length / perPage));
    page = Math.min(Math.max(page, 0), pages - 1);
    body.replaceChildren(...found.slice(page * perPage, (page + 1) * perPage).map((row) => {
      const line = make("tr"), name = make("button", row.sample, "link"), first = make("td");
      name.type = "button";
      name.addEventListener("click", () => {
        selectSample(row.i);
        if ($("map")) { $("map").scrollIntoView({ block: "center" }); $("map").focus({ preventScroll: true }); }
      });
      first.append(data.points ? name : row.sample);
      const cluster = make("td"), mark = make("span", undefined, "dot-mark " + (row.cluster < 0 ? "colourless" : "colour" + (row.cluster % 10)));
      const text = make("span", undefined);
      text.append(mark, clusterName(row.cluster));
      cluster.append(text);
      const verdict = make("td");
      verdict.append(make("span", row.verdict, "badge level" + level[row.i]));
      line.append(first, cluster, verdict, make("td", row.view), make("td", row.error.toFixed(2)), make("td", row.why));
      [...line.cells].forEach((cell, c) => { cell.dataset.name = heads[c].textContent.replace(/[▲▼]/g, ""); });
      return line;
    }));
    $("matches").textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} samples`;
    $("page-number").textContent = `page ${page + 1} of ${pages}, ${found.length.toLocaleString("en")} samples`;
    $("previous").disabled = page === 0;
    $("next").disabled = page === pages - 1;
  };
  const refresh = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    found = rows.filter((row) => words.every((word) => row.text.includes(word)));
    found.sort((a, b) => sign * compare[key](a, b) || b.error - a.error || a.i - b.i);
    for (const head of heads) {
      const here = head.dataset.key === key;
      head.querySelector("span").textContent = here ? (sign > 0 ? "▲" : "▼") : "";
      if (here) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    page = 0;
    fill();
  };
  for (const head of heads) head.querySelector("button").addEventListener("click", () => {
    sign = head.dataset.key === key ? -sign : ["verdict", "error"].includes(head.dataset.key) ? -1 : 1;
    key = head.dataset.key;
    refresh();
  });
  $("search").addEventListener("input", refresh);
  $("previous").addEventListener("click", () => { page--; fill(); });
  $("next").addEventListener("click", () => { page++; fill(); });
  window.addEventListener("beforeprint", () => { perPage = 200; fill(); });
  window.addEventListener("afterprint", () => { perPage = usual; fill(); });
  refresh();
  renamed.push(fill);
}

// ---- names of clusters, wherever they stand
const showNames = () => {
  document.querySelectorAll("#clusters tbody tr:not(.colourless) th").forEach((head, c) => { head.textContent = clusterName(c); });
  for (const node of document.querySelectorAll("[data-name-of]")) {
    const c = Number(node.dataset.nameOf);
    node.textContent = names[c] ? clusterName(c) : (node.dataset.before || "") + c;
  }
  renamed.forEach((write) => write());
};
readColours();
showNames();
