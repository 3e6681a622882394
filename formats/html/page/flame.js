// ---- trees: nodes are numbers; parents come before their children
const hasWaits = data.has_waits === true;
// Which time is width: all of it, that on a processor, or that off it.
const measures = {wall: (total, waited) => total, cpu: (total, waited) => total - waited, wait: (total, waited) => waited};
let measure = "wall";
// A tree as lists, one entry for each node: {name, parent, total, self, calls, waited, self_waited}, and `up`
// of one that has callers and callees: 1 of what called its root.
const listsOf = ["total", "self", "calls", "waited", "self_waited"];
class TreeMaker {
  constructor(rootName) {
    this.lists = {name: [rootName], parent: [0], up: [0], total: [0], self: [0], calls: [0], waited: [0], self_waited: [0]};
    this.index = new Map();
  }
  child(parent, name, up = 0) {
    const key = parent + ":" + name + ":" + up, known = this.index.get(key);
    if (known !== undefined) return known;
    const {lists} = this, node = lists.name.length;
    this.index.set(key, node);
    lists.name.push(name);
    lists.parent.push(parent);
    lists.up.push(up);
    for (const list of listsOf) lists[list].push(0);
    return node;
  }
  // What node `i` of `t` has, as far as it is counted here.
  add(node, t, i, counted) {
    for (const list of counted) this.lists[list][node] += t[list]?.[i] ?? 0;
  }
}
// What has one path is one node. Folded: so is a function that calls itself, however often.
function merged(sources, isFolded) {
  const made = new TreeMaker(-1), {lists} = made;
  for (const t of sources) {
    const to = [0];
    lists.total[0] += t.total[0] || 0;
    for (let i = 1; i < t.parent.length; ++i) {
      const parent = to[t.parent[i]], isAgain = isFolded && parent !== 0 && lists.name[parent] === t.name[i];
      to[i] = isAgain ? parent : made.child(parent, t.name[i]);
      made.add(to[i], t, i, isAgain ? ["self", "calls", "self_waited"] : listsOf);
    }
  }
  return lists;
}
// Functions by their own time, below them who called them.
const kLeastShare = 1e-5;  // of the time; the callers of less are "other paths"
function inverted(t) {
  const made = new TreeMaker(-1), {lists} = made, all = t.self.reduce((a, b) => a + b, 0);
  lists.total[0] = t.total[0];
  const put = (node, i) => {
    lists.total[node] += t.self[i];
    lists.waited[node] += t.self_waited[i];
    lists.calls[node] += t.calls[i];
  };
  for (let i = 1; i < t.parent.length; ++i) {
    let node = made.child(0, t.name[i]);
    put(node, i);
    made.add(node, t, i, ["self", "self_waited"]);
    if (t.self[i] < all * kLeastShare) { if (t.parent[i] !== 0 && t.self[i] > 0) put(made.child(node, -3), i); continue; }
    for (let p = t.parent[i]; p !== 0; p = t.parent[p]) put(node = made.child(node, t.name[p]), i);
  }
  return lists;
}
// Callers above and callees below one function, of its outermost calls.
function around(t, name) {
  const made = new TreeMaker(name), within = new Map();  // nodes of t below the function: their nodes here
  for (let i = 1; i < t.parent.length; ++i) {
    const above = within.get(t.parent[i]);
    if (above !== undefined) {
      const node = made.child(above, t.name[i]);
      within.set(i, node);
      made.add(node, t, i, listsOf);
    } else if (t.name[i] === name) {
      within.set(i, 0);
      made.add(0, t, i, listsOf);
      let node = 0;
      for (let p = t.parent[i]; p !== 0; p = t.parent[p]) {
        node = made.child(node, t.name[p], 1);
        made.add(node, t, i, ["total", "calls", "waited"]);
      }
    }
  }
  return made.lists;
}
function treeOf(t, order) {
  const children = t.parent.map(() => []), none = t.total.map(() => 0);
  const waited = t.waited ?? none, selfWaited = t.self_waited ?? none, measured = measures[measure];
  const width = t.total.map((total, i) => measured(total, waited[i])), sums = none.slice();
  for (let i = 1; i < t.parent.length; ++i) children[t.parent[i]].push(i);
  // What its children take, where that is more than it was timed with.
  for (let i = t.parent.length - 1; i >= 0; --i) {
    width[i] = Math.max(width[i], sums[i]);
    if (i > 0 && !(t.up?.[i] && t.parent[i] === 0)) sums[t.parent[i]] += width[i];
  }
  if (order === "widest") for (const list of children) list.sort((a, b) => width[b] - width[a]);
  return {name: t.name, parent: t.parent, up: t.up ?? none, total: t.total, self: t.self, calls: t.calls, waited, selfWaited, children, width};
}
// What is drawn: which functions are at the top, how those beside each other follow, and whether
// a function that calls itself is one box.
let shape = "callers", order = "widest", isFolded = false, centre = -1;
const shapes = {callers: t => t, inverted, around: t => around(t, centre)};
const trees = new Map();
function remembered(key, make) {
  if (!trees.has(key)) trees.set(key, make());
  return trees.get(key);
}
const sourcesOf = which => which === "all" ? data.threads.map(t => t.tree) : [data.threads[which].tree];
const shaped = sources => treeOf(shapes[shape](merged(sources, isFolded)), order);
const shapeKey = () => [measure, shape, order, isFolded, shape === "around" ? centre : ""].join();
function tree(which = $("thread").value) {
  return remembered(which + "," + shapeKey(), () => shaped(sourcesOf(which)));
}
// As it was recorded: callers above, recursion and all.
function plainTree(which = $("thread").value) {
  return remembered("plain " + which + measure, () => treeOf(merged(sourcesOf(which), false), "widest"));
}

// ---- flame graph: callers above, callees below; width is time
const kRow = 18, kLeastBox = 0.4;  // CSS pixels
const kMostLevels = 1500;  // browsers draw no canvas above 32,767 pixels
const flameRange = new Range(1e-9);
let selected = 0, hovered = -1, boxes = [], rowOfRoot = 0, isTooDeep = false;
function colour(name) {
  if (name < 0) return "hsl(0 0% 60%)";
  return colours[name] ??= paints[paint](name);
}
let colours = [], paint = "family";
const hashOf = text => { let h = 0; for (const c of text) h = (h * 31 + c.codePointAt(0)) >>> 0; return h; };
// The module of main; without one that of the most functions. Others are paler.
const ownModule = (() => {
  const main = names.indexOf("main"), counts = data.modules.names.map(() => 0);
  for (const module of data.modules.of) ++counts[module];
  return main >= 0 ? data.modules.of[main] : counts.indexOf(Math.max(...counts));
})();
function hueOf(family, name) {  // not that of what is lit
  const hue = hashOf(family) % 300, own = hashOf(names[name]), isOwn = data.modules.of[name] === ownModule;
  return `hsl(${hue < 245 ? hue : hue + 60} ${(isOwn ? 50 : 24) + own % 20}% ${(isOwn ? 64 : 76) + (own >> 8) % 10}%)`;
}
const paints = {
  // A namespace or class, else the module.
  family: name => hueOf(/([A-Za-z_]\w*)(<…>)?::/.exec(shortOf(name))?.[1] ?? moduleOf(name), name),
  module: name => hueOf(moduleOf(name), name),
  name: name => hueOf(names[name], name),
  // Of its own time, on a processor where that is known: from pale to red.
  cost: name => {
    const row = data.functions.find(f => f[0] === name), most = data.functions.reduce((a, f) => Math.max(a, selfCpu(f)), 1);
    const share = row === undefined ? 0 : Math.sqrt(selfCpu(row) / most);
    return `hsl(${48 - 42 * share} ${40 + 50 * share}% ${86 - 28 * share}%)`;
  },
};
function setPaint(which) {
  paint = $("paint").value = Object.hasOwn(paints, which) ? which : "family";
  colours = [];
}
// What it is compared with: {label, tree}. The share of the time that the same path takes there.
let base = null;
function baseShare(node) {
  const t = tree(), b = base.tree, up = t.up[node], path = [];
  for (; node !== 0; node = t.parent[node]) path.unshift(t.name[node]);
  let at = 0;
  for (const name of path) {
    at = b.children[at].find(child => b.name[child] === name && b.up[child] === up);
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
// The position of a node: row, below or above the root's, begin and end, from 0 to 1.
function extentOf(node) {
  const t = tree(), up = t.up[node], path = [];
  for (; node !== 0; node = t.parent[node]) path.unshift(node);
  let low = 0, high = 1, parent = 0;
  for (const child of path) {
    const whole = t.width[parent], span = high - low;
    let before = 0;
    for (const sibling of t.children[parent]) {
      if (sibling === child) break;
      if (t.up[sibling] === up) before += t.width[sibling];
    }
    low += span * (whole > 0 ? before / whole : 0);
    high = low + span * (whole > 0 ? t.width[child] / whole : 0);
    parent = child;
  }
  return [up ? -path.length : path.length, low, high];
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
    if (Math.abs(row) + 1 === kMostLevels) {
      isTooDeep ||= t.children[node].length !== 0;
      continue;
    }
    const whole = t.width[node], at = [low, low];
    for (const child of t.children[node]) {
      const share = whole > 0 ? span * t.width[child] / whole : 0, up = t.up[child], begin = at[up];
      at[up] += share;
      if (share / flameRange.span * width < kLeastBox) continue;
      if (flameRange.x(begin, width) < width && flameRange.x(begin + share, width) > 0) todo.push([child, row + (up ? -1 : 1), begin, share]);
    }
  }
  rowOfRoot = -boxes.reduce((least, box) => Math.min(least, box[1]), 0);
  for (const box of boxes) box[1] += rowOfRoot;
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
    if (measure === "wall" && t.waited[node] > 0 && t.name[node] >= 0 && t.width[node] > 0) {
      const part = w * Math.min(1, t.waited[node] / t.width[node]);
      if (part >= 1) hatch(g, x + w - part, row * kRow, part - 0.5, kRow - 1);
    }
    if (node === hovered || (node === selected && node !== 0)) {
      g.strokeStyle = text;
      g.lineWidth = node === selected ? 2 : 1;
      g.strokeRect(x + 1, row * kRow + 1, Math.max(w - 2.5, 0.5), kRow - 3);
    }
    if (w > 24) {
      g.fillStyle = "#16181b";
      g.fillText(fitted(g, t.name[node], "", w - 8), x + 4, row * kRow + kRow / 2);
    }
  }
  $("reset").hidden = flameRange.isWhole && selected === 0;
  sayFlame();
}
// A function's name and what follows it, as they fit into this width: whole, shortened, or cut.
const widths = new Map();
function widthOf(g, text) {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 20_000) widths.clear();
    widths.set(text, width = g.measureText(text).width);
  }
  return width;
}
function fitted(g, name, more, width) {
  const whole = nameOf(name) + more;
  if (widthOf(g, whole) <= width) return whole;
  let short = shortOf(name) + more;
  // The end of a qualified name says most.
  for (let at; widthOf(g, short) > width && (at = short.search(/(?<![:({])::(?=[^:]*[^:])/)) > 0;) short = short.slice(at + 2);
  const takes = widthOf(g, short);
  return takes <= width ? short : short.slice(0, Math.max(1, Math.floor(short.length * width / takes) - 1)) + "…";
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
  const t = plainTree(), isBelow = new Uint8Array(t.name.length);
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
  const t = tree(), all = plainTree().width[0], node = hovered >= 0 ? hovered : selected;
  if (wanted !== "") {
    const sum = sumOf(isFound);
    $("found").textContent = count(sum.boxes) + " found, " + time(sum.total) + (sum.boxes ? ", " + percent(sum.total, all) : "");
  } else {
    $("found").textContent = "";
  }
  if (t.name.length === 1 && t.width[0] === 0) { $("detail").textContent = "There are no calls."; return; }
  const measured = measures[measure], total = t.name[node] < 0 ? t.width[node] : measured(t.total[node], t.waited[node]);
  let text = nameOf(t.name[node]) + "\n" + time(total) + ", " + percent(total, all) + " of the " + {wall: "time", cpu: "time on a processor", wait: "time off the processor"}[measure] + ($("thread").value === "all" && data.threads.length > 1 ? " of all threads together" : "");
  if (shape === "around" && node !== 0) text += ", " + percent(total, t.width[0]) + " of that of " + nameOf(centre);
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
  choose(tree().name[node] >= 0 ? nameOf(tree().name[node]) : "", true, true);
  const view = $("views").getBoundingClientRect(), top = $("graph").getBoundingClientRect().top + (row + rowOfRoot) * kRow - view.top;
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
  clear: () => { selected = 0; flameRange.reset(); choose("", true, true); },
  next: selectNextFound,
  arrow: selectBeside,
};
$("graph").addEventListener("mousemove", e => {
  const node = boxAt(e);
  say(node < 0 ? "" : tipOfBox(node), e);
  if (node !== hovered) { hovered = node; drawFlame(); }
});
$("graph").addEventListener("mouseleave", e => { hovered = -1; say("", e); drawFlame(); });
$("graph").addEventListener("click", e => { const node = boxAt(e); if (node >= 0 && e.detail < 2) select(node, true); });
$("graph").addEventListener("dblclick", () => {
  if (tree().name[selected] < 0) return;
  shape = $("shape").value = "around";
  lookAt(tree().name[selected]);
});
function tipOfBox(node) {
  const t = tree(), measured = measures[measure];
  if (t.name[node] < 0) return nameOf(t.name[node]) + "\n" + time(t.width[node]);
  return shortOf(t.name[node]) + "\n" + time(measured(t.total[node], t.waited[node])) + ", itself " + time(measured(t.self[node], t.selfWaited[node])) + "\n" + counted(t.calls[node], "call");
}
// From the top again, with what was chosen above the graph.
function redrawFlame() {
  flameRange.reset();
  selected = 0;
  hovered = -1;
  if (shape === "around" && centre < 0) centre = names.indexOf(chosen);
  if (shape === "around" && centre < 0) centre = data.functions.reduce((a, b) => a === null || selfCpu(b) > selfCpu(a) ? b : a, null)?.[0] ?? -1;
  drawFlame();
  if (shape === "around") $("views").scrollTop = Math.max(0, (rowOfRoot + 1) * kRow - $("views").clientHeight / 2);
}
// The function that has its callers above and its callees below.
function lookAt(name) {
  centre = name;
  redrawFlame();
  keep(true);
}
$("measure").addEventListener("change", e => { measure = e.target.value; redrawFlame(); keep(); });
$("paint").addEventListener("change", e => { setPaint(e.target.value); views[current()].draw(); keep(); });
$("shape").addEventListener("change", e => { shape = e.target.value; centre = -1; redrawFlame(); keep(true); });
$("flame-order").addEventListener("change", e => { order = e.target.value; redrawFlame(); keep(); });
$("fold").addEventListener("click", () => { setFolded(!isFolded); redrawFlame(); keep(); });
$("thread").addEventListener("change", () => { redrawFlame(); keep(); });
function setFolded(folds) {
  isFolded = folds;
  $("fold").setAttribute("aria-pressed", folds);
}
