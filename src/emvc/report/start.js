// ---- copying, theme, drawing
$("copy")?.addEventListener("click", async () => {
  const text = $("code").textContent;
  try { await navigator.clipboard.writeText(text); }
  catch {
    const range = document.createRange();
    range.selectNodeContents($("code"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  $("copy").textContent = "Copied";
  setTimeout(() => { $("copy").textContent = "Copy"; }, 1500);
});
const drawAll = () => { readColours(); draws.forEach((draw) => draw()); };
const root = document.documentElement, darkMedia = matchMedia("(prefers-color-scheme: dark)");
const remember = (value) => { try { value ? localStorage.setItem("emvc-theme", value) : 0; return localStorage.getItem("emvc-theme"); } catch { return value || null; } };
if (remember()) root.dataset.theme = remember();
$("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : darkMedia.matches;
  root.dataset.theme = dark ? "light" : "dark";
  remember(root.dataset.theme);
  drawAll();
});
darkMedia.addEventListener("change", drawAll);
matchMedia("print").addEventListener("change", drawAll);
window.addEventListener("beforeprint", drawAll);
window.addEventListener("afterprint", drawAll);
let waiting = 0;
new ResizeObserver(() => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(drawAll); }).observe(document.querySelector("main"));
drawAll();
