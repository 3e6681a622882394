// ---- calls on the time line: below the activity of a thread, one row for each depth
const kBar = 15;
const kDepth = 0, kFirst = 1, kWidth = 2, kName = 3, kCalls = 4, kCovered = 5;  // fields of a bar;
const kWhole = 6, kTotal = 7, kSelf = 8, kBegin = 9, kEnd = 10, kRecord = 11, kEndRecord = 12;  // of a single call
const isCall = bar => bar.length > kCovered + 1;
let closeUp = null;  // a part of the time that was asked for: {first, last, shift, part, threads}, in ns from the page's begin
let selectedBar = null;  // {thread, bar, shift, records: {begin, end}}

// Of the close-up, while it covers what is seen; null: it does not.
function closeUpOf(thread) {
  if (closeUp === null || closeUp.first > timeRange.low * span + 1 || timeRange.high * span > closeUp.last + 1) return null;
  return closeUp.threads.find(t => t.number === thread.number) ?? null;
}
// The bars to draw. `shift`: ns from the page's begin.
function barsOf(thread) {
  const near = closeUpOf(thread), {bars, all_calls: all, deeper_calls: deeper} = near ?? thread;
  return {bars, shift: near === null ? 0 : closeUp.shift, all, deeper};
}
// Bars of a list by their depth, each in order of time.
const byDepth = new WeakMap();
function rowsOf(bars) {
  let rows = byDepth.get(bars);
  if (rows === undefined) {
    rows = [];
    for (const bar of bars) {
      while (rows.length <= bar[kDepth]) rows.push([]);
      rows[bar[kDepth]].push(bar);
    }
    for (const row of rows) row.sort((a, b) => a[kFirst] - b[kFirst]);
    byDepth.set(bars, rows);
  }
  return rows;
}
const barDepths = thread => Math.max(rowsOf(thread.bars).length, rowsOf(closeUpOf(thread)?.bars ?? []).length);
const barEnds = (bar, shift) => [(bar[kFirst] + shift) / span, (bar[kFirst] + bar[kWidth] + shift) / span];
// The number of the first bar of a row that ends behind this moment.
function firstBehind(row, ns) {
  let low = 0;
  for (let high = row.length; low < high;) {
    const middle = (low + high) >> 1;
    if (row[middle][kFirst] + row[middle][kWidth] < ns) low = middle + 1; else high = middle;
  }
  return low;
}
function drawBars(lane) {
  if (lane.shownRows === 0) return;
  if (litFor !== wanted + "\n" + chosen) [litNames, litFor] = [[], wanted + "\n" + chosen];
  const [g, width] = prepare(lane.calls, lane.shownRows * kBar), {bars, shift} = barsOf(lane.thread), rows = rowsOf(bars);
  const drawing = {lit: css("--lit"), outline: css("--text"), fill: ""}, top = Math.floor(lane.topRow), last = timeRange.high * span - shift;
  for (let depth = top; depth < Math.min(rows.length, top + lane.shownRows + 1); ++depth) {
    const row = rows[depth], y = (depth - lane.topRow) * kBar;
    let drawn = -1, isDrawnLit = false;  // the pixel up to which there is one
    for (let i = firstBehind(row, timeRange.low * span - shift); i < row.length && row[i][kFirst] <= last; ++i) {
      const [low, high] = barEnds(row[i], shift), x = Math.max(timeRange.x(low, width), -1), end = Math.min(timeRange.x(high, width), width + 1);
      const lit = isLit(row[i]);
      if (end < drawn + 1 && (!lit || isDrawnLit)) continue;
      drawn = Math.max(drawn, end);
      isDrawnLit = lit;
      drawBar(g, lane.thread, row[i], shift, x, Math.max(end - x, 0.5), y, width, drawing);
    }
  }
}
// Of what is searched and chosen now, by the number of the name.
let litNames = [], litFor = "";
function isLit(bar) {
  const name = bar[kName];
  return name >= 0 && (litNames[name] ??= isFound(names[name]) || (chosen !== "" && names[name] === chosen));
}
function drawBar(g, thread, bar, shift, left, w, top, width, drawing) {
  const fill = isLit(bar) ? drawing.lit : colour(bar[kName]);
  if (fill !== drawing.fill) g.fillStyle = drawing.fill = fill;  // which a browser reads again each time
  // Several calls: as full as their time is of calls.
  const alpha = isCall(bar) || bar[kCalls] <= 1 ? 1 : (3 + Math.round(5 * Math.min(1, bar[kCovered] / Math.max(bar[kWidth], 1)))) / 10;
  if (alpha !== 1) g.globalAlpha = alpha;
  g.fillRect(left, top, w > 3 ? w - 0.5 : w, kBar - 1);
  if (alpha !== 1) g.globalAlpha = 1;
  if (w >= 4) hatchWaits(g, thread, bar, shift, left, w, top, width);
  if (selectedBar !== null && selectedBar.thread === thread && sameBar(selectedBar, bar, shift)) {
    g.strokeStyle = drawing.outline;
    g.lineWidth = 2;
    g.strokeRect(left + 1, top + 1, Math.max(w - 2, 0.5), kBar - 3);
  }
  if (w < 26) return;
  g.fillStyle = drawing.fill = "#16181b";
  const text = isCall(bar) || bar[kCalls] <= 1 ? "" : " and others, " + counted(bar[kCalls], "call");
  g.fillText(fitted(g, bar[kName], text, w - 6), left + 3, top + kBar / 2);
}
// Within a bar, the times in which the thread was off the processor.
function hatchWaits(g, thread, bar, shift, left, w, top, width) {
  const waits = (closeUpOf(thread) ?? thread).waits ?? [], begin = data.first_ns + bar[kFirst] + shift;
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

// The bar under the pointer, or within a pixel of it; null: none is.
function barAt(lane, event) {
  const {thread, calls: canvas} = lane, {bars, shift} = barsOf(thread), row = rowsOf(bars)[Math.floor(lane.topRow + event.offsetY / kBar)] ?? [];
  const near = 1.5 / canvas.clientWidth * timeRange.span, position = timeRange.position(event.offsetX, canvas.clientWidth);
  let best = null, least = Infinity;
  for (let i = firstBehind(row, (position - near) * span - shift); i < row.length; ++i) {
    const [low, high] = barEnds(row[i], shift), away = Math.max(low - position, position - high, 0);
    if (low - position > near) break;
    if (away <= near && away < least) [best, least] = [row[i], away];
  }
  return best === null ? null : {thread, bar: best, shift};
}
function callerOf({thread, bar}) {
  if (bar[kDepth] === 0) return null;
  const row = rowsOf(barsOf(thread).bars)[bar[kDepth] - 1] ?? [];
  return row.find(b => b[kFirst] <= bar[kFirst] && bar[kFirst] + bar[kWidth] <= b[kFirst] + b[kWidth]) ?? null;
}
// As arrow keys say: the caller, the longest callee, the bars before and behind it.
function selectBarBeside(key) {
  const {thread, bar} = selectedBar, {bars, shift} = barsOf(thread), rows = rowsOf(bars), row = rows[bar[kDepth]] ?? [];
  const number = row.findIndex(other => sameBar(selectedBar, other, shift)), first = selectedBar.bar[kFirst] + selectedBar.shift - shift;
  const within = (rows[bar[kDepth] + 1] ?? []).filter(b => b[kFirst] >= first && b[kFirst] + b[kWidth] <= first + bar[kWidth]);
  const to = {ArrowUp: () => callerOf({thread, bar: row[number] ?? bar}), ArrowDown: () => within.reduce((a, b) => a === null || b[kWidth] > a[kWidth] ? b : a, null),
    ArrowLeft: () => row[number - 1], ArrowRight: () => row[number + 1]}[key]() ?? null;
  if (to === null) return;
  selectBar({thread, bar: to, shift});
  showBar(selectedBar);
}
// Where it can be seen.
function showBar({bar, shift, thread}) {
  const [low, high] = barEnds(bar, shift), lane = lanes.find(one => one.thread === thread), top = bar[kDepth] * kBar;
  if (high < timeRange.low || low > timeRange.high) timeRange.show(...moved((low + high - timeRange.span) / 2, 0));
  if (bar[kDepth] >= rowsShown(rowsOpened())) lane.isOpened = true;
  drawTime();
  if (top < lane.rows.scrollTop || top > lane.rows.scrollTop + lane.rows.clientHeight - kBar) lane.rows.scrollTop = top - lane.rows.clientHeight / 2;
}
function selectBar(found) {
  selectedBar = found;
  if (found === null) { selectedTime = null; choose("", false); fillRecords(); return; }
  const [low, high] = barEnds(found.bar, found.shift);
  [selectedTime, selectedWhat] = [[low, high], " in " + found.thread.name + ", " + (isCall(found.bar) ? "one call," : "several calls,")];
  choose(nameOf(found.bar[kName]), true);
  askRecords(found);
}
function sayBar(found) {
  const {bar, shift} = found, caller = callerOf(found);
  const name = nameOf(bar[kName]), module = moduleOf(bar[kName]);
  let text = "\n" + name + (module ? " (" + module + ")" : "") + placeOf(bar[kName]);
  if (!isCall(bar)) {
    return text + "\n" + (bar[kCalls] === 0 ? "a part of a call, or of several" : "and others: " + counted(bar[kCalls], "call")) + ", " + time(bar[kCovered]) + " in " + time(bar[kWidth]) + "; zoom in for each call";
  }
  text += "\nbegan at " + since((bar[kBegin] + shift) / span) + ", took " + time(bar[kTotal]) + (bar[kWhole] ? "" : " at least") + ", itself " + time(bar[kSelf]);
  if (bar[kEnd] === "cut_by_window") text += "; it is longer than the time that was read: zoom out for all of it";
  else if (bar[kEnd] !== "returned") text += "; " + bar[kEnd].replaceAll("_", " ");
  if (caller !== null) text += "\ncalled by " + nameOf(caller[kName]) + (isCall(caller) ? "" : ", or another call that is near") + placeOf(caller[kName]);
  else if (bar[kDepth] === 0) text += "\nno caller was recorded";
  return text;
}

function tipOfBar(found) {
  if (found === null) return "";
  const {bar, shift} = found, name = shortOf(bar[kName]);
  if (!isCall(bar)) return name + (bar[kCalls] > 1 ? " and others, " + counted(bar[kCalls], "call") : "") + "\n" + time(bar[kCovered]) + " in " + time(bar[kWidth]);
  return name + "\n" + time(bar[kTotal]) + (bar[kWhole] ? "" : " at least") + ", itself " + time(bar[kSelf]) + "\nat " + since((bar[kBegin] + shift) / span);
}
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
