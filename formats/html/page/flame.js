// ---- trees: nodes are numbers; parents come before their children
const hasWaits = data.has_waits === true;
// Which time is width: all of it, that on a processor, or that off it.
const measures = {wall: (total, waited) => total, cpu: (total, waited) => total - waited, wait: (total, waited) => waited};
let measure = "wall";
function treeOf(thread) {
  const t = thread.tree, children = t.parent.map(() => []), none = t.total.map(() => 0);
  const waited = t.waited ?? none, selfWaited = t.self_waited ?? none, measured = measures[measure];
  const width = t.total.map((total, i) => measured(total, waited[i])), sums = none.slice();
  for (let i = 1; i < t.parent.length; ++i) children[t.parent[i]].push(i);
  for (const list of children) list.sort((a, b) => width[b] - width[a]);
  // What its children take, where that is more than it was timed with.
  for (let i = t.parent.length - 1; i >= 0; --i) {
    width[i] = Math.max(width[i], sums[i]);
    if (i > 0) sums[t.parent[i]] += width[i];
  }
  return {name: t.name, parent: t.parent, total: t.total, self: t.self, calls: t.calls, waited, selfWaited, children, width};
}
function mergedTree(threadTrees) {
  const all = {name: [-1], parent: [0], total: [0], self: [0], calls: [0], waited: [0], self_waited: [0]};
  const index = new Map();
  for (const t of threadTrees) {
    const to = [0];
    all.total[0] += t.total[0] || 0;
    for (let i = 1; i < t.parent.length; ++i) {
      const key = to[t.parent[i]] + ":" + t.name[i];
      let node = index.get(key);
      if (node === undefined) {
        node = all.name.length;
        index.set(key, node);
        all.name.push(t.name[i]);
        all.parent.push(to[t.parent[i]]);
        for (const list of [all.total, all.self, all.calls, all.waited, all.self_waited]) list.push(0);
      }
      to[i] = node;
      if (t.waited) { all.waited[node] += t.waited[i]; all.self_waited[node] += t.self_waited[i]; }
      all.total[node] += t.total[i]; all.self[node] += t.self[i]; all.calls[node] += t.calls[i];
    }
  }
  return treeOf({tree: all});
}
const trees = new Map();
function tree(which = $("thread").value) {
  const key = which + measure;
  if (!trees.has(key)) trees.set(key, which === "all" ? mergedTree(data.threads.map(t => t.tree)) : treeOf(data.threads[which]));
  return trees.get(key);
}

// ---- flame graph: callers above, callees below; width is time
const kRow = 18, kLeastBox = 0.4;  // CSS pixels
const kMostLevels = 1500;  // browsers draw no canvas above 32,767 pixels
const flameRange = new Range(1e-9);
let selected = 0, hovered = -1, boxes = [], isTooDeep = false;
function colour(name) {
  if (name < 0) return "hsl(0 0% 60%)";
  return colours[name] ??= colourOf(name);
}
const colours = [];
const hashOf = text => { let h = 0; for (const c of text) h = (h * 31 + c.codePointAt(0)) >>> 0; return h; };
// A hue for each namespace or class, else for each module; not that of what is lit.
function colourOf(name) {
  const family = /([A-Za-z_]\w*)(<…>)?::/.exec(shortOf(name))?.[1] ?? moduleOf(name), hue = hashOf(family) % 300, own = hashOf(names[name]);
  return `hsl(${hue < 245 ? hue : hue + 60} ${45 + own % 20}% ${66 + (own >> 8) % 12}%)`;
}
// What it is compared with: {label, tree}. The share of the time that the same path takes there.
let base = null;
function baseShare(node) {
  const t = tree(), b = base.tree, path = [];
  for (; node !== 0; node = t.parent[node]) path.unshift(t.name[node]);
  let at = 0;
  for (const name of path) {
    at = b.children[at].find(child => b.name[child] === name);
    if (at === undefined) return 0;
  }
  return b.width[0] > 0 ? b.width[at] / b.width[0] : 0;
}
const shareIn = (t, node) => t.width[0] > 0 ? t.width[node] / t.width[0] : 0;
// Grey: as there. Red: more, blue: less; full from twice or half on.
function changeColour(node) {
  const here = shareIn(tree(), node), there = baseShare(node);
  const change = here + there > 0 ? (here - there) / Math.max(here, there) : 0, light = 92 - 42 * Math.min(1, 2 * Math.abs(change));
  return `hsl(${change > 0 ? 4 : 212} ${Math.abs(change) < 0.02 ? 0 : 75}% ${light}%)`;
}
// The position of a node: row, begin and end, from 0 to 1.
function extentOf(node) {
  const t = tree(), path = [];
  for (; node !== 0; node = t.parent[node]) path.unshift(node);
  let low = 0, high = 1, parent = 0;
  for (const child of path) {
    const whole = t.width[parent], span = high - low;
    let before = 0;
    for (const sibling of t.children[parent]) {
      if (sibling === child) break;
      before += t.width[sibling];
    }
    low += span * (whole > 0 ? before / whole : 0);
    high = low + span * (whole > 0 ? t.width[child] / whole : 0);
    parent = child;
  }
  return [path.length, low, high];
}
// The boxes that are seen: node, row, x, width in pixels.
function layOut(width) {
  const t = tree(), todo = [[0, 0, 0, 1]];
  boxes = [];
  isTooDeep = false;
  while (todo.length !== 0) {
    const [node, row, low, span] = todo.pop();
    const x = flameRange.x(low, width), end = flameRange.x(low + span, width);
    boxes.push([node, row, Math.max(x, 0), Math.min(end, width) - Math.max(x, 0)]);
    if (row + 1 === kMostLevels) {
      isTooDeep ||= t.children[node].length !== 0;
      continue;
    }
    const whole = t.width[node];
    let at = low;
    for (const child of t.children[node]) {
      const share = whole > 0 ? span * t.width[child] / whole : 0;
      if (share / flameRange.span * width < kLeastBox) break;  // sorted: the rest is narrower
      if (flameRange.x(at, width) >= width) break;
      if (flameRange.x(at + share, width) > 0) todo.push([child, row + 1, at, share]);
      at += share;
    }
  }
}
function drawFlame() {
  const t = tree(), canvas = $("graph");
  layOut(canvas.clientWidth || 800);
  const [g] = prepare(canvas, (boxes.reduce((most, box) => Math.max(most, box[1]), 0) + 1) * kRow);
  const lit = css("--lit"), text = css("--text");
  for (const [node, row, x, w] of boxes) {
    const name = nameOf(t.name[node]), isChosen = chosen !== "" && name === chosen;
    g.fillStyle = isChosen || isFound(name) ? lit : base !== null ? changeColour(node) : colour(t.name[node]);
    g.fillRect(x, row * kRow, Math.max(w - 0.5, 0.5), kRow - 1);
    // Of all of its time, the part off the processor, at its end.
    if (measure === "wall" && t.waited[node] > 0 && node !== 0 && t.width[node] > 0) {
      const part = w * Math.min(1, t.waited[node] / t.width[node]);
      if (part >= 1) hatch(g, x + w - part, row * kRow, part - 0.5, kRow - 1);
    }
    if (node === hovered || (node === selected && node !== 0)) {
      g.strokeStyle = text;
      g.lineWidth = node === selected ? 2 : 1;
      g.strokeRect(x + 1, row * kRow + 1, Math.max(w - 2.5, 0.5), kRow - 3);
    }
    if (w > 24) {
      g.save();
      g.beginPath(); g.rect(x + 2, row * kRow, w - 5, kRow); g.clip();
      g.fillStyle = "#16181b";
      g.fillText(g.measureText(name).width > w - 8 ? shortOf(t.name[node]) : name, x + 4, row * kRow + kRow / 2);
      g.restore();
    }
  }
  $("reset").hidden = flameRange.isWhole && selected === 0;
  sayFlame();
}
function hatch(g, x, y, w, h) {
  g.save();
  g.beginPath(); g.rect(x, y, w, h); g.clip();
  g.globalAlpha = 0.45;
  g.strokeStyle = "#fff";
  g.lineWidth = 2;
  g.beginPath();
  for (let at = x - h - (x - h) % 6; at < x + w; at += 6) { g.moveTo(at, y + h); g.lineTo(at + h, y); }
  g.stroke();
  g.restore();
}
// Total time and boxes of the functions that `matches`, each time counted once.
function sumOf(matches) {
  const t = tree(), isBelow = new Uint8Array(t.name.length);
  const sum = {total: 0, calls: 0, boxes: 0};
  for (let i = 1; i < t.name.length; ++i) {
    const isMatch = t.name[i] >= 0 && matches(names[t.name[i]]);
    isBelow[i] = isMatch || isBelow[t.parent[i]] ? 1 : 0;
    if (!isMatch) continue;
    ++sum.boxes;
    sum.calls += t.calls[i];
    if (!isBelow[t.parent[i]]) sum.total += measures[measure](t.total[i], t.waited[i]);
  }
  return sum;
}
function sayFlame() {
  const t = tree(), all = t.width[0], node = hovered >= 0 ? hovered : selected;
  if (wanted !== "") {
    const sum = sumOf(isFound);
    $("found").textContent = count(sum.boxes) + " found, " + time(sum.total) + (sum.boxes ? ", " + percent(sum.total, all) : "");
  } else {
    $("found").textContent = "";
  }
  if (t.name.length === 1) { $("detail").textContent = "There are no calls."; return; }
  const measured = measures[measure], total = t.name[node] < 0 ? t.width[node] : measured(t.total[node], t.waited[node]);
  let text = nameOf(t.name[node]) + "\n" + time(total) + ", " + percent(total, all) + " of the " + {wall: "time", cpu: "time on a processor", wait: "time off the processor"}[measure];
  if (selected !== 0 && node !== selected) text += ", " + percent(total, t.width[selected]) + " of what is selected";
  if (t.name[node] >= 0) text += "; itself " + time(measured(t.self[node], t.selfWaited[node])) + "; " + counted(t.calls[node], "call") + ", " + time(total / Math.max(t.calls[node], 1)) + " each";
  if (hasWaits && measure === "wall" && t.name[node] >= 0) text += "; off the processor " + time(t.waited[node]) + ", itself " + time(t.selfWaited[node]);
  if (base !== null) text += "\ncompared with " + base.label + ": " + percent(baseShare(node), 1) + " of the time there, " + percent(shareIn(t, node), 1) + " here";
  if (nameOf(t.name[node]) !== chosen) text += placeOf(t.name[node]);  // the panel says it
  if (isTooDeep) text += "\ncalls deeper than " + count(kMostLevels) + " levels are not drawn";
  $("detail").textContent = text;
}
function boxAt(event) {
  const row = Math.floor(event.offsetY / kRow), x = event.offsetX;
  const box = boxes.find(b => b[1] === row && x >= b[2] && x < b[2] + b[3]);
  return box === undefined ? -1 : box[0];
}
function select(node, isFit) {
  selected = node;
  hovered = -1;
  const [row, low, high] = extentOf(node);
  // Out of sight, or too narrow to be drawn: the next best is to show it whole.
  const isSeen = high > flameRange.low && low < flameRange.high && (high - low) / flameRange.span * $("graph").clientWidth >= kLeastBox;
  if (isFit || !isSeen) flameRange.show(low, high);
  choose(tree().name[node] >= 0 ? nameOf(tree().name[node]) : "", true);
  const view = $("views").getBoundingClientRect(), top = $("graph").getBoundingClientRect().top + row * kRow - view.top;
  if (top < 0 || top > view.height - kRow) $("views").scrollBy(0, top - view.height / 2);
}
function selectNextFound() {
  const t = tree(), ids = [...t.name.keys()].slice(1);
  const next = ids.filter(i => isFound(nameOf(t.name[i])));
  if (next.length !== 0) select(next.find(i => i > selected) ?? next[0], false);
}
function selectBeside(key) {
  const t = tree(), siblings = t.children[t.parent[selected]];
  if (key === "ArrowUp") return select(t.parent[selected], false);
  if (key === "ArrowDown") return t.children[selected].length && select(t.children[selected][0], false);
  const to = selected === 0 ? undefined : siblings[siblings.indexOf(selected) + (key === "ArrowRight" ? 1 : -1)];
  if (to !== undefined) select(to, false);
}
const flame = {
  range: flameRange,
  draw: drawFlame,
  area: () => $("graph").getBoundingClientRect(),
  fit: () => select(selected, true),
  clear: () => select(0, true),
  next: selectNextFound,
  arrow: selectBeside,
};
$("graph").addEventListener("mousemove", e => { const node = boxAt(e); if (node !== hovered) { hovered = node; drawFlame(); } });
$("graph").addEventListener("mouseleave", () => { hovered = -1; drawFlame(); });
$("graph").addEventListener("click", e => { const node = boxAt(e); if (node >= 0) select(node, true); });
$("measure").addEventListener("change", e => { measure = e.target.value; flameRange.reset(); selected = 0; hovered = -1; drawFlame(); keep(); });
$("thread").addEventListener("change", () => { flameRange.reset(); selected = 0; hovered = -1; drawFlame(); keep(); });
