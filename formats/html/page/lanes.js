// ---- the lanes of the time line, one for each thread: its name, its activity, its calls
// Rows of calls; deeper ones are behind a button, then the thread scrolls, as high as the view has room.
const kLeastRows = 8, kRowsOfFew = 14;
const rowsOpened = () => Math.max(kLeastRows, Math.floor(($("views").clientHeight - $("ruler").offsetHeight - kLane - 8) / kBar));
const rowsShown = opened => data.threads.length === 1 ? opened : Math.min(opened, data.threads.length < 8 ? kRowsOfFew : kLeastRows);
class Lane {
  constructor(thread) {
    this.thread = thread;
    this.isFolded = this.isPinned = this.isOpened = false;
    this.activity = element("canvas", "");
    this.calls = element("canvas", "");
    this.activity.style.height = kLane + "px";  // until it is drawn, a canvas would be as high as half its width
    this.calls.style.height = kBar + "px";
    this.rows = element("div", "", element("div", "", this.calls));
    this.more = button("", "Show deeper calls, and scroll", () => { this.isOpened = !this.isOpened; drawTime(); });
    this.folder = button("▾", "Show the calls of this thread, or not", () => { this.isFolded = !this.isFolded; drawTime(); });
    this.pin = button("pin", "Keep this thread at the top, or not", () => { this.isPinned = !this.isPinned; placeLanes(); keep(); });
    const [, name, tid] = /^(.*?)( \(\d+\))?$/s.exec(thread.name);
    const parts = [["name", name], ["tid", tid ?? ""]].map(([what, text]) => { const part = element("span", text); part.className = what; return part; });
    this.label = element("span", "", this.folder, ...parts, this.pin);
    this.label.className = "label";
    this.label.title = thread.name + (thread.gaps.length ? ", events lost in " + count(thread.gaps.length) + " places" : "") + (thread.stalls.length ? ", stalled " + count(thread.stalls.length) + " times" : "");
    this.rows.className = "rows";
    this.rows.addEventListener("scroll", drawSoon);
    const head = element("div", "", this.label, this.activity), below = element("div", "", element("span", "", this.more), this.rows);
    head.className = "lane";
    below.className = "lane calls";
    this.below = below;
    this.element = element("div", "", head, below);
    this.element.className = "thread";
  }
  // Its height by what there is to draw.
  fit(opened) {
    const all = this.isFolded ? 0 : barDepths(this.thread), few = rowsShown(opened), shown = Math.min(all, this.isOpened ? opened : few);
    this.shownRows = shown;
    this.folder.textContent = this.isFolded ? "▸" : "▾";
    this.folder.setAttribute("aria-expanded", !this.isFolded);
    this.pin.setAttribute("aria-pressed", this.isPinned);
    this.below.hidden = shown === 0;
    this.rows.style.height = shown * kBar + "px";
    this.rows.style.overflowY = this.isOpened && all > shown ? "auto" : "hidden";
    this.rows.firstChild.style.height = (this.isOpened ? all : shown) * kBar + "px";
    this.more.hidden = all <= few;
    this.more.textContent = this.isOpened ? "fewer rows" : counted(all - few, "more row");
  }
  get topRow() { return this.rows.scrollTop / kBar; }
  isSeen(area) {
    const own = this.element.getBoundingClientRect();
    return own.height > 0 && own.bottom >= area.top && own.top <= area.bottom;
  }
}
const lanes = data.threads.map(thread => new Lane(thread));
// A thread that began after the page was made.
function addThread({name, number}) {
  const thread = {name, number, bars: [], all_calls: false, deeper_calls: 0, activity: [], stalls: [], gaps: [], tree: noTree};
  data.threads.push(thread);
  whole.threads.push(noTree);
  lanes.push(new Lane(thread));
  busyOf(thread);
  $("thread").append(optionOf(data.threads.length - 1, name));
}
const laneOf = canvas => lanes.find(lane => lane.activity === canvas || lane.calls === canvas);

// ---- which lanes, in which order
const orders = {recorded: null, busy: (a, b) => busyOf(b.thread) - busyOf(a.thread), name: (a, b) => a.thread.name.localeCompare(b.thread.name, "en", {numeric: true})};
const busy = new Map();
// Time in its recorded calls, on a processor as far as that is known.
function busyOf(thread) {
  if (!busy.has(thread)) busy.set(thread, thread.tree.self.reduce((sum, ns, i) => sum + ns - (thread.tree.self_waited?.[i] ?? 0), 0));
  return busy.get(thread);
}
for (const {thread} of lanes) busyOf(thread);  // of the whole, before a part of it is shown
function placeLanes() {
  const only = $("threads-wanted").value.toLowerCase(), by = orders[$("order").value], sorted = by === null ? lanes : [...lanes].sort(by);
  let hidden = 0;
  for (const lane of sorted) {
    const isWanted = lane.isPinned || lane.thread.name.toLowerCase().includes(only);
    lane.element.hidden = !isWanted;
    hidden += isWanted ? 0 : 1;
    $(lane.isPinned ? "pinned" : "lanes").append(lane.element);
  }
  $("hidden-threads").textContent = hidden === 0 ? "" : counted(hidden, "thread") + " not shown: the name does not contain “" + $("threads-wanted").value + "”";
  if (current() === "time") drawTime();
}
$("order").addEventListener("change", () => { placeLanes(); keep(); });
$("threads-wanted").addEventListener("input", () => { placeLanes(); keep(); });
$("views").addEventListener("scroll", () => { if (current() === "time") drawSoon(); });
