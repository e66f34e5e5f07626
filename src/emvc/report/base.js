// What all pages share: data, colours, light and dark, files made by the browser, tables in pages.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const typed = (text, Type) => new Type(bytes(text).buffer);
const make = (tag, text, name) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
};

// Colours come from the style sheet, so that the canvases follow light, dark and print.
let colours = {};
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
const readColours = () => {
  for (const name of ["paper", "card", "ink", "soft", "line", "accent", "missing"]) colours[name] = css("--" + name);
  colours.clusters = [...Array(10).keys()].map((k) => css("--c" + k));
  for (const letter of "esd") colours[letter] = [...Array(5).keys()].map((k) => rgb(css("--" + letter + k)));
};
const ramp = (stops, value) => {
  const t = Math.min(Math.max(value, 0), 1) * (stops.length - 1);
  const k = Math.min(Math.floor(t), stops.length - 2);
  return stops[k].map((low, c) => Math.round(low + (t - k) * (stops[k + 1][c] - low)));
};
const rampColour = (value) => (isNaN(value) ? colours.missing : `rgb(${ramp(colours.e, value).join(",")})`);
const clusterColour = (c) => (c < 0 ? colours.missing : colours.clusters[c % 10]);

const prepare = (canvas) => {
  const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  canvas.width = Math.max(1, Math.round(box.width * ratio));
  canvas.height = Math.max(1, Math.round(box.height * ratio));
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [pen, box.width, box.height];
};
const place = (tip, canvas, x, y) => {
  tip.hidden = false;
  const w = canvas.clientWidth, h = canvas.clientHeight;
  tip.style.left = Math.max(0, Math.min(x + 14, w - tip.offsetWidth)) + "px";
  const below = y + 14 + tip.offsetHeight <= h;
  tip.style.top = (below ? y + 14 : Math.max(0, y - 14 - tip.offsetHeight)) + "px";
};
const draws = [];

// A file made by the browser: nothing leaves the page.
const saveTable = (name, header, rows) => {
  const cell = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const text = [header, ...rows].map((row) => row.map(cell).join(",") + "\n").join("");
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
