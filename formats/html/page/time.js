// ---- time line: what each thread was doing when, in equal parts of the whole time
const span = Math.max(data.last_ns - data.first_ns, 1);
const timeRange = new Range(Math.min(1, 100 / span));  // 100 ns
const kLane = 26, kStall = 5, kWait = 5;
const lanes = [];
let selectedTime = null, markedTime = null, pointed = null, dragged = null;  // [first, last] of 0 to 1
let selectedWhat = "";
const most = data.threads.reduce((most, t) => t.activity.reduce((m, n) => Math.max(m, n), most), 1);
const shareOf = ns => (ns - data.first_ns) / span;
const trimmed = text => text.includes(".") ? text.replace(/\.?0+ /, " ") : text;  // 200.0 ms: 200 ms
const since = position => time(position * span);

for (const [name, text] of [["--busy", "events (higher: more)"], ...(hasWaits ? [["--wait", "off the processor"]] : []), ["--stall", "stalled"], ["--gap", "events lost"], ["--mark", "marked"]]) {
  const item = document.createElement("span"), box = document.createElement("i");
  box.style.background = `var(${name})`;
  item.append(box, text);
  $("legend").append(item);
}
data.threads.forEach((thread, number) => {
  const lane = document.createElement("div"), label = document.createElement("span"), canvas = document.createElement("canvas");
  lane.className = "lane";
  label.textContent = thread.name;
  label.title = thread.name + (thread.gaps.length ? ", events lost in " + count(thread.gaps.length) + " places" : "") + (thread.stalls.length ? ", stalled " + count(thread.stalls.length) + " times" : "");
  lane.append(label, canvas);
  $("lanes").append(lane, barCanvases[number].parentElement);
  lanes.push(canvas);
  canvas.addEventListener("mousedown", e => { dragged = {number, from: at(e), isMoved: false}; e.preventDefault(); });
});
const at = event => timeRange.position(event.clientX - lanes[0].getBoundingClientRect().left, lanes[0].clientWidth);

function drawAxis() {
  const [g, width] = prepare($("axis"), 20), shown = timeRange.span * span;
  // 1, 2 or 5 times a power of ten, so that labels do not touch.
  let step = 10 ** Math.floor(Math.log10(shown * 110 / width));
  for (const factor of [2, 2.5, 2]) if (step / shown * width < 90) step *= factor;
  g.fillStyle = css("--dim");
  const first = Math.ceil(timeRange.low * span / step) * step;
  for (let ns = first; ns <= timeRange.high * span; ns += step) {
    const x = timeRange.x(ns / span, width);
    g.fillRect(x, 14, 1, 6);
    // Where four digits do not tell the labels apart, they count from the first one.
    const isClose = step < first / 500 && ns !== first;
    const label = ns === 0 ? "0" : isClose ? "+" + trimmed(time(Math.round(ns - first))) : trimmed(time(Math.round(ns)));
    if (x + g.measureText(label).width + 6 < width) g.fillText(label, x + 3, 8);
  }
}
function drawLane(thread, canvas, colours) {
  const [g, width] = prepare(canvas, kLane);
  const bar = (first, last, top, height, least) => {
    const x = timeRange.x(first, width), end = timeRange.x(last, width);
    if (end >= 0 && x <= width) g.fillRect(Math.max(x, -1), top, Math.max(Math.min(end, width + 1) - Math.max(x, -1), least), height);
  };
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, width, kLane);
  const parts = thread.activity.length;
  g.fillStyle = colours.busy;
  thread.activity.forEach((n, i) => {
    const height = n === 0 ? 0 : Math.max(2, (kLane - kStall - 1) * Math.sqrt(n / most));
    if (height > 0) bar(i / parts, (i + 1) / parts, kLane - height, height, 1);
  });
  g.fillStyle = colours.wait;
  for (const [first, last] of thread.waits ?? []) bar(shareOf(first), shareOf(last), kLane - kWait, kWait, 0.5);
  g.fillStyle = colours.gap;
  for (const [first, last] of thread.gaps) {
    g.globalAlpha = 0.35;
    bar(shareOf(first), shareOf(last), kLane / 2, kLane / 2, 2);
    g.globalAlpha = 1;
    bar(shareOf(first), shareOf(last), 0, kLane / 2, 2);
  }
  g.fillStyle = colours.stall;
  for (const [first, last] of thread.stalls) bar(shareOf(first), shareOf(last), 0, kStall, 2);
  for (const [interval, colour] of [[markedTime, colours.mark], [selectedTime, colours.accent]]) {
    if (interval === null) continue;
    g.fillStyle = colour;
    g.globalAlpha = 0.22;
    bar(interval[0], interval[1], 0, kLane, 1);
    g.globalAlpha = 1;
    bar(interval[0], interval[0], 0, kLane, 1);
    bar(interval[1], interval[1], 0, kLane, 1);
  }
}
function drawTime() {
  const colours = {};
  for (const name of ["panel", "busy", "gap", "stall", "wait", "mark", "accent"]) colours[name] = css("--" + name);
  drawAxis();
  data.threads.forEach((thread, i) => { drawLane(thread, lanes[i], colours); drawBars(thread, barCanvases[i]); });
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
  const near = 2 / lanes[0].clientWidth * timeRange.span;
  for (const [list, what] of [[thread.stalls, "stalled"], [thread.gaps, "events lost"], [thread.waits ?? [], "off the processor"]]) {
    const found = list.find(([first, last]) => shareOf(first) - near <= position && position <= shareOf(last) + near);
    if (found !== undefined) return [found.map(shareOf), ` in ${thread.name}, ${what},`];
  }
  return [null, ""];
}
function selectTime(interval, what) {
  selectedTime = interval;
  selectedWhat = what;
  drawTime();
}
document.addEventListener("mousemove", e => {
  if (dragged === null) return;
  const to = Math.min(1, Math.max(0, at(e)));
  dragged.isMoved ||= Math.abs(to - dragged.from) / timeRange.span * lanes[0].clientWidth > 3;
  if (dragged.isMoved) selectedBar = null;
  if (dragged.isMoved) selectTime([Math.min(dragged.from, to), Math.max(dragged.from, to)], "");
});
document.addEventListener("mouseup", e => {
  if (dragged !== null && !dragged.isMoved) selectedBar = null;
  if (dragged !== null && !dragged.isMoved) selectTime(...intervalAt(data.threads[dragged.number], at(e)));
  dragged = null;
});
$("lanes").addEventListener("mousemove", e => { pointed = e.target.tagName === "CANVAS" ? at(e) : null; sayTime(); });
$("lanes").addEventListener("mouseleave", () => { pointed = null; sayTime(); });
const timeLine = {
  range: timeRange,
  draw: drawTime,
  area: () => lanes.length ? lanes[0].getBoundingClientRect() : $("axis").getBoundingClientRect(),
  fit: () => {
    if (selectedTime === null) timeRange.reset();
    else timeRange.show(selectedTime[0] - (selectedTime[1] - selectedTime[0]) / 10, selectedTime[1] + (selectedTime[1] - selectedTime[0]) / 10);
    drawTime();
  },
  clear: () => { timeRange.reset(); selectedTime = null; selectBar(null); },
  mark: () => { markedTime = selectedTime === null || String(markedTime) === String(selectedTime) ? null : selectedTime; drawTime(); keep(); },
  next: nextBar,
  arrow: key => { timeRange.pan(key === "ArrowLeft" ? -0.1 : key === "ArrowRight" ? 0.1 : 0); drawTime(); },
};
