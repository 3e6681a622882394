// ---- time line: what each thread was doing when. Moments are shares of the whole time, of 0 to 1
let span = Math.max(data.last_ns - data.first_ns, 1);  // grows while the page follows a recording
const wholeSpan = span;                                // of what came with the page
const timeRange = new Range(Math.min(1, 100 / span));  // 100 ns
const kLane = 26, kStall = 5, kWait = 5, kOverview = 34;
let selectedTime = null, markedTime = null, pointed = null;  // [first, last]; one moment
let selectedWhat = "";
const shareOf = ns => (ns - data.first_ns) / span;
const trimmed = text => text.includes(".") ? text.replace(/\.?0+ /, " ") : text;  // 200.0 ms: 200 ms
const since = position => time(position * span);

for (const [name, text] of [["--busy", "events (higher: more)"], ...(hasWaits ? [["--wait", "off the processor"]] : []), ["--stall", "stalled"], ["--gap", "events lost"], ["--mark", "marked"]]) {
  const item = element("span", "", element("i", ""), text);
  item.firstChild.style.background = `var(${name})`;
  $("legend").append(item);
}

// ---- events of equal parts of a time: of the close-up while it covers what is seen, else of the whole
const kParts = data.threads[0]?.activity.length ?? 1;
function activityOf(thread) {
  const near = closeUpOf(thread);
  return near !== null ? {parts: near.activity, first: closeUp.shift, part: closeUp.part} : {parts: thread.activity, first: 0, part: partOf(wholeSpan)};
}
const partOf = ns => Math.floor(ns / kParts) + 1;
// The highest rate that is drawn, in events of a ns.
function mostEvents() {
  let most = 0;
  for (const {thread} of lanes) {
    const {parts, part} = activityOf(thread);
    for (const n of parts) most = Math.max(most, n / part);
  }
  return most;
}
const sumOfAll = data.threads.reduce((sum, thread) => { thread.activity.forEach((n, i) => { sum[i] = (sum[i] ?? 0) + n; }); return sum; }, []);

// ---- drawing
function labelsOf(g, width, range, draw) {
  const shown = range.span * span;
  // 1, 2 or 5 times a power of ten, so that labels do not touch.
  let step = 10 ** Math.floor(Math.log10(shown * 110 / width));
  for (const factor of [2, 2.5, 2]) if (step / shown * width < 90) step *= factor;
  const first = Math.ceil(range.low * span / step) * step;
  for (let ns = first; ns <= range.high * span; ns += step) {
    // Where four digits do not tell the labels apart, they count from the first one.
    const isClose = step < first / 500 && ns !== first;
    draw(range.x(ns / span, width), ns === 0 ? "0" : isClose ? "+" + trimmed(time(Math.round(ns - first))) : trimmed(time(Math.round(ns))));
  }
}
function drawAxis() {
  const [g, width] = prepare($("axis"), 20);
  g.fillStyle = css("--dim");
  labelsOf(g, width, timeRange, (x, label) => {
    g.fillRect(x, 14, 1, 6);
    if (x + g.measureText(label).width + 6 < width) g.fillText(label, x + 3, 8);
  });
  g.fillStyle = css("--mark");
  for (const [ns] of data.markers) {
    const x = timeRange.x(ns / span, width);
    g.beginPath(); g.moveTo(x - 5, 9); g.lineTo(x + 5, 9); g.lineTo(x, 20); g.fill();
  }
}
// Fills [first, last] of a range, at least so many pixels of it.
function filler(g, range, width) {
  return (first, last, top, height, least) => {
    const x = range.x(first, width), end = range.x(last, width);
    if (end >= 0 && x <= width) g.fillRect(Math.max(x, -1), top, Math.max(Math.min(end, width + 1) - Math.max(x, -1), least), height);
  };
}
const wholeRange = new Range(1);
function drawOverview(colours) {
  const [g, width] = prepare($("overview"), kOverview), fill = filler(g, wholeRange, width);
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, width, kOverview);
  g.fillStyle = colours.busy;
  const part = partOf(wholeSpan), parts = [...sumOfAll.map((n, i) => [i * part, (i + 1) * part, n]), ...followed];
  const rate = ([first, last, events]) => events / (last - first), most = parts.reduce((a, b) => Math.max(a, rate(b)), 1e-9);
  for (const one of parts) {
    const height = one[2] === 0 ? 0 : Math.max(1, (kOverview - 4) * Math.sqrt(rate(one) / most));
    if (height > 0) fill(one[0] / span, one[1] / span, kOverview - height, height, 1);
  }
  for (const thread of data.threads) {
    g.fillStyle = colours.stall;
    for (const [first, last] of thread.stalls) fill(shareOf(first), shareOf(last), 0, 4, 1);
    g.fillStyle = colours.gap;
    for (const [first, last] of thread.gaps) fill(shareOf(first), shareOf(last), 0, kOverview, 1);
  }
  g.fillStyle = colours.mark;
  for (const [ns] of data.markers) fill(ns / span, ns / span, 0, kOverview, 1);
  fillIntervals(fill, g, colours, kOverview);
  g.fillStyle = colours.back;
  g.globalAlpha = 0.65;
  fill(0, timeRange.low, 0, kOverview, 0);
  fill(timeRange.high, 1, 0, kOverview, 0);
  g.globalAlpha = 1;
  g.fillStyle = colours.accent;
  for (const at of [timeRange.low, timeRange.high]) g.fillRect(Math.min(width - 2, Math.max(0, at * width - 1)), 0, 2, kOverview);
}
function fillIntervals(fill, g, colours, height) {
  for (const [interval, colour] of [[markedTime, colours.mark], [selectedTime, colours.accent]]) {
    if (interval === null) continue;
    g.fillStyle = colour;
    g.globalAlpha = 0.22;
    fill(interval[0], interval[1], 0, height, 1);
    g.globalAlpha = 1;
    fill(interval[0], interval[0], 0, height, 1);
    fill(interval[1], interval[1], 0, height, 1);
  }
}
function drawActivity(thread, canvas, most, colours) {
  const [g, width] = prepare(canvas, kLane), fill = filler(g, timeRange, width);
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, width, kLane);
  g.fillStyle = colours.busy;
  const {parts, first: begin, part} = activityOf(thread);
  parts.forEach((n, i) => {
    const height = n === 0 ? 0 : Math.max(2, (kLane - kStall - 1) * Math.sqrt(n / part / most));
    if (height > 0) fill((begin + i * part) / span, (begin + (i + 1) * part) / span, kLane - height, height, 1);
  });
  const shown = closeUpOf(thread) ?? thread;
  g.fillStyle = colours.wait;
  for (const [first, last] of shown.waits ?? []) fill(shareOf(first), shareOf(last), kLane - kWait, kWait, 0.5);
  g.fillStyle = colours.gap;
  for (const [first, last] of shown.gaps) {
    g.globalAlpha = 0.35;
    fill(shareOf(first), shareOf(last), kLane / 2, kLane / 2, 2);
    g.globalAlpha = 1;
    fill(shareOf(first), shareOf(last), 0, kLane / 2, 2);
  }
  g.fillStyle = colours.stall;
  for (const [first, last] of shown.stalls) fill(shareOf(first), shareOf(last), 0, kStall, 2);
  fillIntervals(fill, g, colours, kLane);
}
function drawTime() {
  const colours = {};
  for (const name of ["back", "panel", "busy", "gap", "stall", "wait", "mark", "accent"]) colours[name] = css("--" + name);
  drawOverview(colours);
  drawAxis();
  const seen = $("views").getBoundingClientRect(), most = mostEvents(), opened = rowsOpened();
  for (const lane of lanes) lane.fit(opened);
  const drawn = lanes.filter(lane => lane.isSeen(seen));  // before anything is drawn, which costs a layout
  for (const lane of drawn) {
    drawActivity(lane.thread, lane.activity, most, colours);
    drawBars(lane);
  }
  $("reset").hidden = timeRange.isWhole && selectedTime === null;
  $("totals").hidden = !canAsk || selectedTime === null;
  sayTime();
  askLater();
}
const wordsOf = ([first, last]) => "from " + since(first) + " to " + since(last) + ": " + time((last - first) * span);
function sayTime() {
  let text = timeRange.isWhole ? "the whole: " + time(span) : "shown " + wordsOf([timeRange.low, timeRange.high]);
  if (pointed !== null) text += "; the pointer is at " + since(pointed);
  const deeper = data.threads.reduce((sum, thread) => sum + barsOf(thread).deeper, 0);
  if (deeper > 0 && selectedTime === null) text += "\n" + counted(deeper, "call") + " below, not drawn";
  if (selectedTime !== null) text += "\nselected" + selectedWhat + " " + wordsOf(selectedTime);
  if (selectedBar !== null) text += sayBar(selectedBar);
  if (markedTime !== null) text += "\nmarked " + wordsOf(markedTime);
  $("detail").textContent = text;
}
// A gap or stall of the thread at this moment, or within two pixels of it.
function intervalAt(thread, position) {
  const near = 2 / $("axis").clientWidth * timeRange.span, shown = closeUpOf(thread) ?? thread;
  for (const [list, what] of [[shown.stalls, "stalled"], [shown.gaps, "events lost"], [shown.waits ?? [], "off the processor"]]) {
    const found = list.find(([first, last]) => shareOf(first) - near <= position && position <= shareOf(last) + near);
    if (found !== undefined) return [found.map(shareOf), what];
  }
  return [null, ""];
}
function selectTime(interval, what) {
  selectedTime = interval;
  selectedWhat = what;
  drawTime();
}
const timeLine = {
  range: timeRange,
  draw: drawTime,
  area: () => $("axis").getBoundingClientRect(),
  fit: () => {
    if (selectedTime === null) timeRange.reset();
    else timeRange.show(selectedTime[0] - (selectedTime[1] - selectedTime[0]) / 10, selectedTime[1] + (selectedTime[1] - selectedTime[0]) / 10);
    drawTime();
  },
  clear: () => { timeRange.reset(); selectedTime = null; selectBar(null); },
  mark: () => { markedTime = selectedTime === null || String(markedTime) === String(selectedTime) ? null : selectedTime; drawTime(); keep(); },
  next: nextBar,
  arrow: key => {
    if (selectedBar !== null) { selectBarBeside(key); return; }
    if (key === "ArrowUp" || key === "ArrowDown") $("views").scrollBy(0, key === "ArrowUp" ? -60 : 60);
    timeRange.pan(key === "ArrowLeft" ? -0.1 : key === "ArrowRight" ? 0.1 : 0);
    drawTime();
  },
};
