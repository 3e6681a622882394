// ---- calls on the time line: below the activity of a thread, one row for each depth
const kBar = 15, kMostBarRows = 64;
const kDepth = 0, kFirst = 1, kWidth = 2, kName = 3, kCalls = 4, kCovered = 5;  // fields of a bar;
const kWhole = 6, kTotal = 7, kSelf = 8, kBegin = 9, kEnd = 10, kRecord = 11, kEndRecord = 12;  // of a single call
const isCall = bar => bar.length > kCovered + 1;
let closeUp = null;  // a part of the time that was asked for: {first, last, threads}, in ns from the page's begin
let selectedBar = null;  // {thread, bar, shift, records}
const barCanvases = [];

// The bars to draw: of the close-up while it covers what is seen, else of the page. `shift`: ns from the page's begin.
function barsOf(thread) {
  const first = timeRange.low * span, last = timeRange.high * span;
  if (closeUp !== null && closeUp.first <= first + 1 && last <= closeUp.last + 1) {
    const found = closeUp.threads.find(t => t.number === thread.number);
    if (found !== undefined) return {bars: found.bars, shift: closeUp.shift, all: found.all_calls, deeper: found.deeper_calls};
  }
  return {bars: thread.bars, shift: 0, all: thread.all_calls, deeper: thread.deeper_calls};
}
function barRows(thread) {
  let rows = 0;
  for (const list of [thread.bars, closeUp?.threads.find(t => t.number === thread.number)?.bars ?? []])
    for (const bar of list) rows = Math.max(rows, bar[kDepth] + 1);
  return Math.min(rows, kMostBarRows);
}
const barEnds = (bar, shift) => [(bar[kFirst] + shift) / span, (bar[kFirst] + bar[kWidth] + shift) / span];
function drawBars(thread, canvas) {
  const rows = barRows(thread);
  canvas.hidden = rows === 0;
  if (rows === 0) return;
  const [g, width] = prepare(canvas, rows * kBar), {bars, shift} = barsOf(thread);
  const lit = css("--lit"), outline = css("--text");
  for (const bar of bars) {
    const [low, high] = barEnds(bar, shift), x = timeRange.x(low, width), end = timeRange.x(high, width);
    if (end < 0 || x > width || bar[kDepth] >= kMostBarRows) continue;
    const left = Math.max(x, -1), w = Math.max(Math.min(end, width + 1) - left, 0.5), top = bar[kDepth] * kBar;
    const name = nameOf(bar[kName]), isLit = isFound(name) || (chosen !== "" && name === chosen);
    g.fillStyle = isLit ? lit : colour(bar[kName]);
    // Several calls: as full as their time is of calls.
    g.globalAlpha = isCall(bar) || bar[kCalls] <= 1 ? 1 : 0.3 + 0.5 * Math.min(1, bar[kCovered] / Math.max(bar[kWidth], 1));
    g.fillRect(left, top, w > 3 ? w - 0.5 : w, kBar - 1);
    g.globalAlpha = 1;
    if (w >= 4) hatchWaits(g, thread, bar, shift, left, w, top, width);
    if (selectedBar !== null && selectedBar.thread === thread && sameBar(selectedBar, bar, shift)) {
      g.strokeStyle = outline;
      g.lineWidth = 2;
      g.strokeRect(left + 1, top + 1, Math.max(w - 2, 0.5), kBar - 3);
    }
    if (w < 26) continue;
    g.save();
    g.beginPath(); g.rect(left, top, w - 2, kBar); g.clip();
    g.fillStyle = "#16181b";
    const text = g.measureText(name).width > w - 8 ? shortOf(bar[kName]) : name;
    g.fillText(isCall(bar) || bar[kCalls] <= 1 ? text : text + " and others, " + counted(bar[kCalls], "call"), left + 3, top + kBar / 2);
    g.restore();
  }
}
// Within a bar, the times in which the thread was off the processor.
function hatchWaits(g, thread, bar, shift, left, w, top, width) {
  const waits = thread.waits ?? [], begin = data.first_ns + bar[kFirst] + shift;
  let at = 0;
  for (let high = waits.length; at < high;) {  // the first that ends behind its begin
    const middle = (at + high) >> 1;
    if (waits[middle][1] <= begin) at = middle + 1; else high = middle;
  }
  for (; at < waits.length && waits[at][0] < begin + bar[kWidth]; ++at) {
    const x = Math.max(left, timeRange.x(shareOf(waits[at][0]), width)), end = Math.min(left + w, timeRange.x(shareOf(waits[at][1]), width));
    if (end - x >= 2) hatch(g, x, top, end - x, kBar - 1);
  }
}
const sameBar = (one, bar, shift) => one.bar[kDepth] === bar[kDepth] && one.bar[kFirst] + one.shift === bar[kFirst] + shift && one.bar[kWidth] === bar[kWidth];

function barAt(thread, canvas, event) {
  const row = Math.floor(event.offsetY / kBar), {bars, shift} = barsOf(thread);
  const near = 1.5 / canvas.clientWidth * timeRange.span;
  const position = timeRange.position(event.offsetX, canvas.clientWidth);
  let best = null, least = Infinity;
  for (const bar of bars) {
    if (bar[kDepth] !== row) continue;
    const [low, high] = barEnds(bar, shift), away = Math.max(low - position, position - high, 0);
    if (away <= near && away < least) [best, least] = [bar, away];
  }
  return best === null ? null : {thread, bar: best, shift};
}
function callerOf({thread, bar}) {
  if (bar[kDepth] === 0) return null;
  const {bars} = barsOf(thread);
  return bars.find(b => b[kDepth] === bar[kDepth] - 1 && b[kFirst] <= bar[kFirst] && bar[kFirst] + bar[kWidth] <= b[kFirst] + b[kWidth]) ?? null;
}
function selectBar(found) {
  selectedBar = found;
  if (found === null) { selectTime(null, ""); choose("", false); return; }
  const [low, high] = barEnds(found.bar, found.shift);
  selectTime([low, high], " in " + found.thread.name + ", " + (isCall(found.bar) ? "one call," : "several calls,"));
  choose(nameOf(found.bar[kName]), true);
  askRecords(found);
}
function sayBar(found) {
  const {bar, shift, records} = found, caller = callerOf(found);
  const name = nameOf(bar[kName]), module = moduleOf(bar[kName]);
  let text = "\n" + name + (module ? " (" + module + ")" : "") + placeOf(bar[kName]);
  if (!isCall(bar)) {
    return text + "\n" + (bar[kCalls] === 0 ? "a part of a call, or of several" : "and others: " + counted(bar[kCalls], "call")) + ", " + time(bar[kCovered]) + " in " + time(bar[kWidth]) + "; zoom in for each call";
  }
  text += "\nbegan at " + since((bar[kBegin] + shift) / span) + ", took " + time(bar[kTotal]) + (bar[kWhole] ? "" : " at least") + ", itself " + time(bar[kSelf]);
  if (bar[kEnd] !== "returned") text += "; " + bar[kEnd].replaceAll("_", " ");
  if (caller !== null) text += "\ncalled by " + nameOf(caller[kName]) + (isCall(caller) ? "" : ", or another call that is near") + placeOf(caller[kName]);
  else if (bar[kDepth] === 0) text += "\nno caller was recorded";
  return text + (records ?? "");
}

data.threads.forEach(thread => {
  const lane = document.createElement("div"), canvas = document.createElement("canvas");
  lane.className = "lane calls";
  lane.append(document.createElement("span"), canvas);
  barCanvases.push(canvas);
  canvas.addEventListener("click", e => selectBar(barAt(thread, canvas, e)));
});
function nextBar() {  // the next one that is found by its name, thread by thread
  const all = data.threads.flatMap(thread => {
    const {bars, shift} = barsOf(thread);
    return bars.filter(bar => isFound(nameOf(bar[kName]))).sort((a, b) => a[kFirst] - b[kFirst]).map(bar => ({thread, bar, shift}));
  });
  const at = selectedBar === null ? -1 : all.findIndex(one => one.thread === selectedBar.thread && sameBar(selectedBar, one.bar, one.shift));
  if (all.length === 0) return;
  const next = all[(at + 1) % all.length];
  selectBar(next);
  const [low, high] = barEnds(next.bar, next.shift);
  if (low < timeRange.low || high > timeRange.high) { timeRange.show(low - (high - low), high + (high - low)); drawTime(); }
}
