// ---- the view in the address, so that a link, or loading the page again, shows the same
const views = {flame, functions, time: timeLine};
const kUp = "\u2191";  // before a name on the path to a caller
const current = () => document.querySelector("[aria-selected=true]")?.dataset.view;
function pathOf(node) {  // by names: numbers of nodes are this page's
  const t = tree(), path = [];
  for (; node !== 0; node = t.parent[node]) path.unshift((t.up[node] ? kUp : "") + nameOf(t.name[node]));
  return path;
}
function nodeAt(path) {  // as far as it is there
  const t = tree();
  let node = 0;
  for (const name of path) {
    const child = t.children[node].find(c => (t.up[c] ? kUp : "") + nameOf(t.name[c]) === name);
    if (child === undefined) break;
    node = child;
  }
  return node;
}
// `isStep`: Back leads to what the address was before.
function keep(isStep) {
  const thread = $("thread").value, state = {view: current(), search: $("search").value, sort: sortBy, up: ascending, zoom: pathOf(selected)};
  if (measure !== "wall") state.measure = measure;
  if (thread !== "all") state.thread = data.threads[thread].name;
  if (chosen !== "") state.function = chosen;
  if (shape !== "callers") state.shape = shape;
  if (shape === "around") state.centre = nameOf(centre);
  if (order !== "widest") state.order = order;
  if (isFolded) state.folded = true;
  if (paint !== "family") state.paint = paint;
  if ($("order").value !== "busy") state.threads = $("order").value;
  if ($("threads-wanted").value !== "") state.only = $("threads-wanted").value;
  const pinned = lanes.filter(lane => lane.isPinned).map(lane => lane.thread.name);
  if (pinned.length !== 0) state.pinned = pinned;
  if (part !== null) state.part = part;
  if (base?.link) state.base = base.link;
  if (!timeRange.isWhole) state.seen = [timeRange.low, timeRange.high];
  if (markedTime !== null) state.times = markedTime;
  const address = "#" + encodeURIComponent(JSON.stringify(state));
  if (address === location.hash) return;
  try { history[isStep === true ? "pushState" : "replaceState"](null, "", address); } catch { /* a browser that does not let it */ }
}
let keepTimer = 0;
function keepSoon() {  // browsers let a page change its address so often only
  clearTimeout(keepTimer);
  keepTimer = setTimeout(keep, 200);
}
function restore() {
  let state = {};
  try { state = JSON.parse(decodeURIComponent(location.hash.slice(1))) || {}; } catch { /* another's */ }
  const thread = data.threads.findIndex(t => t.name === state.thread);
  $("thread").value = thread >= 0 ? thread : "all";
  if (hasWaits && Object.hasOwn(measures, state.measure)) $("measure").value = measure = state.measure;
  $("search").value = typeof state.search === "string" ? state.search : "";
  wanted = $("search").value.toLowerCase();
  chosen = names.includes(state.function) ? state.function : "";
  if (columns.some(([, column]) => column === state.sort)) sortBy = state.sort;
  ascending = state.up === true;
  shape = $("shape").value = Object.hasOwn(shapes, state.shape) ? state.shape : "callers";
  centre = names.indexOf(state.centre);
  if (shape === "around" && centre < 0) shape = $("shape").value = "callers";
  order = $("flame-order").value = state.order === "first" ? "first" : "widest";
  setFolded(state.folded === true);
  setPaint(state.paint);
  $("order").value = Object.hasOwn(orders, state.threads) ? state.threads : "busy";
  $("threads-wanted").value = typeof state.only === "string" ? state.only : "";
  for (const lane of lanes) lane.isPinned = Array.isArray(state.pinned) && state.pinned.includes(lane.thread.name);
  selected = Array.isArray(state.zoom) ? nodeAt(state.zoom) : 0;
  const [, low, high] = extentOf(selected);
  flameRange.show(low, high);
  const isTime = t => Array.isArray(t) && t.length === 2 && t.every(Number.isFinite) && t[0] <= t[1];
  if (isTime(state.seen)) timeRange.show(...state.seen);
  else timeRange.reset();
  markedTime = isTime(state.times) ? state.times : null;
  chosenCalls = null;
  fillPanel();
  askCalls();
  placeLanes();
  restored = state;
  return Object.hasOwn(views, state.view) ? state.view : "flame";
}
// What has to be asked for comes afterwards.
let restored = {};
async function restoreAsked() {
  const {part: shown, base: link, zoom} = restored;
  const isPart = t => Array.isArray(t) && t.length === 2 && t.every(Number.isFinite);
  if (!canAsk || (!isPart(shown) && link === undefined)) return;
  if (isPart(shown)) await showPart(...shown);
  if (link !== undefined) await compareLink(link);
  selected = Array.isArray(zoom) ? nodeAt(zoom) : 0;
  const [, low, high] = extentOf(selected);
  flameRange.show(low, high);
  views[current()].draw();
  keep();
}
// `link`: [first, last] of this session; or {session} of another one.
async function compareLink(link) {
  const isTimes = Array.isArray(link) && link.length === 2 && link.every(Number.isFinite);
  if (isTimes) await compareWith("the time " + wordsOf(link.map(ns => ns / span)), async () => ({trees: (await totalsOf(...link)).trees}));
  else if (typeof link?.session === "string") await compareWith(link.session, () => treesOfSession(link.session));
  if (base !== null) base.link = link;
  $("base").hidden = base === null;
}

// ---- keys and the wheel, as in Perfetto
let pointerX = null;
document.addEventListener("mousemove", e => { pointerX = e.clientX; });
function shareOfPointer(view) {  // of the seen width; in the middle without one
  const area = view.area();
  if (pointerX === null || pointerX < area.left || pointerX > area.right) return 0.5;
  return (pointerX - area.left) / area.width;
}
const kStep = 0.8, kPan = 0.15;
function move(view, key) {
  if (view.range === undefined) return false;
  if (view === timeLine && (key === "KeyA" || key === "KeyD")) setFollowing(false);
  if (key === "KeyW") view.range.zoom(kStep, shareOfPointer(view));
  else if (key === "KeyS") view.range.zoom(1 / kStep, shareOfPointer(view));
  else if (key === "KeyA") view.range.pan(-kPan);
  else if (key === "KeyD") view.range.pan(kPan);
  else return false;
  drawSoon();
  if (view === timeLine) keepSoon();
  return true;
}
function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || $("help").open) return;
  const view = views[current()], isTyping = event.target === $("search");
  if (["INPUT", "SELECT"].includes(event.target.tagName)) {
    if (event.key === "Escape") { event.target.blur(); event.preventDefault(); }  // what was searched stays
    if (event.key === "Enter" && isTyping) view.next();
    return;
  }
  if (event.key === "/") { if (!$("search").hidden) $("search").focus(); }
  else if (event.key === "?") $("help").showModal();
  else if (event.key === "Escape") view.clear();
  else if (event.key.startsWith("Arrow")) view.arrow(event.key);
  else if (event.code === "KeyF" && view.fit) view.fit();
  else if (event.code === "KeyM" && view.mark) view.mark();
  else if (!move(view, event.code)) return;
  event.preventDefault();
}
document.addEventListener("keydown", onKey);
document.querySelector("main").addEventListener("wheel", e => {
  const view = views[current()];
  if (view.range === undefined) return;
  const isAcross = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY), isOnTime = view === timeLine && e.target.tagName === "CANVAS";
  if (!isAcross && !e.ctrlKey && !isOnTime) return;  // it scrolls
  pointerX = e.clientX;
  if (isOnTime && isAcross) setFollowing(false);
  if (isAcross) view.range.pan((e.deltaX || e.deltaY) / 1000);
  else view.range.zoom(Math.exp(e.deltaY * (e.deltaMode === 1 ? 20 : 1) / 300), shareOfPointer(view));
  drawSoon();
  keepSoon();
  e.preventDefault();
}, {passive: false});

// ---- the whole
function show(view) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.setAttribute("aria-selected", tab.dataset.view === view);
    $(tab.dataset.view).hidden = tab.dataset.view !== view;
  }
  $("thread").hidden = view !== "flame";
  $("measure").hidden = view !== "flame" || !hasWaits;
  $("paint").hidden = view === "functions";
  for (const id of ["shape", "flame-order", "fold"]) $(id).hidden = view !== "flame";
  say("");
  $("totals").hidden = view !== "time" || !canAsk || selectedTime === null;
  $("follow").hidden = view !== "time" || !isRecording;
  if (view === "time" && isFollowing) followSoon(0);
  $("found").textContent = "";
  views[view].draw();
}
document.title = data.title + " - collectord";
$("title").textContent = data.title;
for (const [name, text] of data.facts) {
  const item = document.createElement("span"), strong = document.createElement("b");
  strong.textContent = text;
  item.append(name + " ", strong);
  $("facts").append(item);
}
for (const sentence of data.missing) {
  const line = document.createElement("div");
  line.className = "missing";
  line.textContent = sentence;
  $("missing").append(line);
}
$("thread").append(optionOf("all", "All threads"), ...data.threads.map((t, i) => optionOf(i, t.name)));
$("search").addEventListener("input", e => { wanted = e.target.value.toLowerCase(); views[current()].draw(); keep(); });
for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => { show(tab.dataset.view); keep(true); });
const redraw = () => { views[current()].draw(); drawDurations(); };
window.addEventListener("resize", redraw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
$("reset").addEventListener("click", () => views[current()].clear());
$("keys").addEventListener("click", () => $("help").showModal());
for (const id of ["perfetto", "compare"]) $(id).hidden = !canAsk;
$("perfetto").addEventListener("click", openInPerfetto);
$("totals").addEventListener("click", async () => {
  await showPart(selectedTime[0] * span, selectedTime[1] * span);
  show("flame");
  keep();
});
$("whole").addEventListener("click", showWhole);
$("no-base").addEventListener("click", () => { base = null; $("base").hidden = true; views[current()].draw(); keep(); });
$("compare").addEventListener("click", async () => {
  // With the marked time; without one, with another session.
  let link = markedTime?.map(position => position * span);
  if (link === undefined) {
    const session = window.prompt("Compare with which session? (its name, as session_…/pid_…; or mark a time with M first)");
    if (!session) return;
    link = {session};
  }
  await compareLink(link);
  show("flame");
  keep();
});
$("refresh").hidden = data.can_refresh !== true;
$("refresh").addEventListener("click", () => { keep(); location.reload(); });
$("follow").addEventListener("click", () => setFollowing(!isFollowing));
window.addEventListener("popstate", () => {
  if (part !== null) useTotals(whole.threads, whole.functions, null);
  show(restore());
  restoreAsked();
});
show(restore());
restoreAsked();
