// ---- the mouse on the time line: drag to move, wheel to zoom, Shift or the axis to select a time
const kMoved = 3, kEdge = 6;  // pixels
const at = event => timeRange.position(event.clientX - $("axis").getBoundingClientRect().left, $("axis").clientWidth);
const atOverview = event => (event.clientX - $("overview").getBoundingClientRect().left) / $("overview").clientWidth;
const within = position => Math.min(1, Math.max(0, position));
let drag = null;  // {move, drop, x, y, isMoved}

// What a drag that begins here does with each move, and a click that is none.
function beginDrag(event) {
  const canvas = event.target, from = at(event);
  const selectFrom = {
    move: e => { selectedBar = null; const to = within(at(e)); selectTime([Math.min(from, to), Math.max(from, to)], ""); },
    click: () => { selectedBar = null; selectTime(null, ""); },
  };
  if (canvas === $("overview")) return overviewDrag(event);
  if (canvas === $("axis")) return selectFrom;
  const lane = laneOf(canvas);
  if (lane === undefined) return null;
  const low = timeRange.low, scrolled = [lane.rows, $("views")].map(one => [one, one.scrollTop]);
  return {
    move: event.shiftKey ? selectFrom.move : (e, drag) => {
      setFollowing(false);
      timeRange.show(...moved(low, (drag.x - e.clientX) / $("axis").clientWidth * timeRange.span));
      // Down in the thread, as far as it scrolls, then in all of them.
      let down = drag.y - e.clientY;
      for (const [one, top] of scrolled) {
        one.scrollTop = top + down;
        down -= one.scrollTop - top;
      }
      drawSoon();
      keepSoon();
    },
    click: e => {
      if (canvas === lane.calls) { selectBar(barAt(lane, e)); return; }
      selectedBar = null;
      const [interval, what] = intervalAt(lane.thread, at(e));
      selectTime(interval, what && ` in ${lane.thread.name}, ${what},`);
    },
  };
}
const moved = (low, by) => { const first = Math.min(1 - timeRange.span, Math.max(0, low + by)); return [first, first + timeRange.span]; };
// The window is dragged, or one of its edges; elsewhere a new one is drawn.
function overviewDrag(event) {
  const from = within(atOverview(event)), {low, high, isWhole} = timeRange, edge = kEdge / $("overview").clientWidth;
  const showTo = (first, last) => {
    setFollowing(false);
    timeRange.show(Math.min(first, last), Math.max(first, last));
    drawSoon();
    keepSoon();
  };
  const centre = e => { showTo(...moved(within(atOverview(e)) - timeRange.span / 2, 0)); };
  if (!isWhole && Math.abs(from - low) < edge) return {move: e => showTo(within(atOverview(e)), high), click: centre};
  if (!isWhole && Math.abs(from - high) < edge) return {move: e => showTo(low, within(atOverview(e))), click: centre};
  if (!isWhole && from > low && from < high) return {move: e => showTo(...moved(low, atOverview(e) - from)), click: centre};
  return {move: e => showTo(from, within(atOverview(e))), click: centre};
}

$("time").addEventListener("mousedown", event => {
  if (event.button !== 0 || event.target.tagName !== "CANVAS") return;
  drag = beginDrag(event);
  if (drag === null) return;
  Object.assign(drag, {x: event.clientX, y: event.clientY, isMoved: false});
  event.preventDefault();
});
document.addEventListener("mousemove", event => {
  if (drag === null) return;
  drag.isMoved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > kMoved;
  if (!drag.isMoved) return;
  say("", event);
  drag.move(event, drag);
});
document.addEventListener("mouseup", event => {
  if (drag !== null && !drag.isMoved && event.detail < 2) drag.click(event);
  drag = null;
});
// The second click is of what the first one selected, although the panel has moved it meanwhile.
let clickedFirst = null;
document.addEventListener("mousedown", event => { if (event.detail < 2) clickedFirst = event.target; });
document.addEventListener("dblclick", () => {
  if (clickedFirst === $("overview")) timeLine.clear();
  else if (clickedFirst !== null && laneOf(clickedFirst)?.calls === clickedFirst && selectedBar !== null) timeLine.fit();
  else return;
  keep();
});

// ---- beside the pointer
function tipOf(event) {
  if (event.target === $("axis")) {
    const near = data.markers.find(([ns]) => Math.abs(timeRange.x(ns / span, $("axis").clientWidth) - event.offsetX) < kEdge);
    return near === undefined ? since(at(event)) : near[1] + "\nmarker at " + time(near[0]);
  }
  if (event.target === $("overview")) return since(within(atOverview(event)));
  const lane = laneOf(event.target);
  if (lane === undefined) return "";
  return event.target === lane.calls ? tipOfBar(barAt(lane, event)) : tipOfActivity(lane.thread, at(event));
}
function tipOfActivity(thread, position) {
  const [interval, what] = intervalAt(thread, position), {parts, first, part} = activityOf(thread);
  const n = parts[Math.floor((position * span - first) / part)] ?? 0;
  return since(position) + "\n" + counted(n, "event") + " in " + time(part) + ", " + count(Math.round(n / part * 1e9)) + "/s" + (interval === null ? "" : "\n" + what + " " + wordsOf(interval));
}
$("time").addEventListener("mousemove", event => {
  const isCanvas = event.target.tagName === "CANVAS";
  pointed = isCanvas && event.target !== $("overview") ? within(at(event)) : null;
  if (drag === null) { say(isCanvas ? tipOf(event) : "", event); sayTime(); }
});
$("time").addEventListener("mouseleave", () => { pointed = null; say(""); if (current() === "time") sayTime(); });
