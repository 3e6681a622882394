// Tables of sessions, agents and devices. Rows stay where they are and are filled again, so that a
// button does not move away under the pointer. Everything that came from a program is set as text.

export function count(n) { return n.toLocaleString("en"); }
export function scaled(n, unit) {
  for (const [prefix, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (n >= size) return (n / size).toPrecision(3) + " " + prefix + unit;
  return count(n) + " " + unit;
}
function time(ns) { return ns >= 1e9 ? (ns / 1e9).toFixed(1) + " s" : (ns / 1e6).toFixed(1) + " ms"; }

// One line of a table: `cells` are its <td>, `state` is the row's own memory between two states.
class Row {
  constructor(columns) {
    this.element = document.createElement("tr");
    this.state = {};
    this.cells = columns.map(column => {
      const cell = document.createElement("td");
      if (column.kind) cell.className = column.kind;
      this.element.append(cell);
      return cell;
    });
  }
}

export class Table {
  constructor(element, columns, keyOf) {
    this.columns = columns;
    this.keyOf = keyOf;
    this.rows = new Map();
    const head = element.createTHead().insertRow();
    for (const column of columns) {
      const cell = document.createElement("th");
      if (column.kind) cell.className = column.kind;
      cell.textContent = column.title;
      head.append(cell);
    }
    this.body = element.createTBody();
  }
  show(items) {
    const gone = new Set(this.rows.keys());
    let before = null;
    for (const item of items) {
      const key = this.keyOf(item);
      gone.delete(key);
      let row = this.rows.get(key);
      if (row === undefined) {
        row = new Row(this.columns);
        this.rows.set(key, row);
      }
      this.columns.forEach((column, i) => column.fill(row.cells[i], item, row.state));
      const place = before === null ? this.body.firstChild : before.nextSibling;
      if (place !== row.element) this.body.insertBefore(row.element, place);
      before = row.element;
    }
    for (const key of gone) {
      this.rows.get(key).element.remove();
      this.rows.delete(key);
    }
  }
}

// A text, and a smaller one below it.
function lines(cell, text, under, kind) {
  if (cell.firstChild === null) {
    cell.append(document.createElement("span"), document.createElement("span"));
    cell.lastChild.className = "under";
  }
  cell.firstChild.textContent = text;
  cell.firstChild.className = kind || "";
  cell.lastChild.textContent = under || "";
}

// The rates of the last minute, as bars.
const kSamples = 120;
function drawRates(cell, item, state) {
  state.rates = state.rates || [];
  state.rates.push(item.events_per_second);
  if (state.rates.length > kSamples) state.rates.shift();
  if (cell.firstChild === null) cell.append(document.createElement("canvas"));
  const canvas = cell.firstChild, scale = window.devicePixelRatio || 1;
  canvas.width = 120 * scale;
  canvas.height = 22 * scale;
  const g = canvas.getContext("2d"), most = Math.max(1, ...state.rates);
  g.scale(scale, scale);
  g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--busy").trim();
  state.rates.forEach((rate, i) => {
    const height = 22 * rate / most;
    g.fillRect(120 - state.rates.length + i, 22 - height, 1, height);
  });
}

// `run(action, session, more)` sends a request and says what went wrong.
export function sessionColumns(run) {
  const buttons = [
    ["Detail on", s => !s.sealed && s.detail !== "on", s => run("detail", s, {mode: "on"})],
    ["Detail off", s => !s.sealed && s.detail === "on", s => run("detail", s, {mode: "off"})],
    ["Marker", s => !s.sealed, s => {
      const text = window.prompt("What happens now?");
      return text ? run("marker", s, {text}) : undefined;
    }],
    ["Snapshot", s => !s.sealed, s => run("snapshot", s, {})],
    ["Stop", s => !s.sealed, s => window.confirm("Stop this recording and seal it? The program continues, and Start begins another recording of it.") ? run("stop", s, {}) : undefined],
    ["Start", s => s.sealed && s.isIdle, s => run("start", s, {})],
  ];
  function actions(cell, item, state) {
    state.item = item;
    if (cell.firstChild === null) {
      const all = document.createElement("div");
      const link = document.createElement("a");
      link.className = "button";
      link.textContent = "Open";
      link.target = "_blank";
      link.href = "/sessions/" + item.name;
      all.append(link);
      for (const [title, , press] of buttons) {
        const button = document.createElement("button");
        button.textContent = title;
        button.addEventListener("click", async () => {
          button.disabled = true;
          try { await press(state.item); } finally { button.disabled = false; }
        });
        all.append(button);
      }
      cell.append(all);
    }
    buttons.forEach(([, applies], i) => { cell.firstChild.children[i + 1].hidden = !applies(item); });
  }
  return [
    {title: "Program", kind: "name", fill: (c, s) => lines(c, (s.process || "process") + " (" + s.pid + ")" + (s.device ? " on " + s.device : ""), s.name + (s.tag ? ", " + s.tag : ""))},
    {title: "State", fill: (c, s) => lines(c, s.state, s.health, s.state === "active" ? "recording" : s.sealed && s.health ? "bad" : "")},
    {title: "Threads", kind: "number", fill: (c, s) => { c.textContent = count(s.threads); }},
    {title: "Events", kind: "number", fill: (c, s) => lines(c, count(s.events), s.sealed ? "" : scaled(s.events_per_second, "/s"))},
    {title: "Last minute", fill: drawRates},
    {title: "Lost", kind: "number", fill: (c, s) => lines(c, count(s.lost_events), [s.lost_detail_records ? count(s.lost_detail_records) + " of detail" : "", s.sealed && !s.losses_known ? "and more" : ""].filter(Boolean).join(", "), s.lost_events > 0 ? "bad" : "")},
    {title: "Stalled", kind: "number", fill: (c, s) => lines(c, s.stalls ? time(s.stalled_ns) : "", s.stalls ? count(s.stalls) + " times" : "")},
    {title: "Size", kind: "number", fill: (c, s) => lines(c, scaled(s.bytes, "B"), s.sealed ? "" : scaled(s.bytes_per_second, "B/s"))},
    {title: "Detail", kind: "number", fill: (c, s) => lines(c, s.detail, s.detail_records ? count(s.detail_records) : "")},
    {title: "", kind: "actions", fill: actions},
  ];
}

export const agentColumns = [
  {title: "Program", kind: "name", fill: (c, a) => lines(c, (a.process || a.address) + (a.pid ? " (" + a.pid + ")" : ""), a.name)},
  {title: "State", fill: (c, a) => lines(c, a.state, a.status, a.state === "recording" ? "recording" : "")},
  {title: "Device", fill: (c, a) => { c.textContent = a.device; }},
  {title: "Session", kind: "name", fill: (c, a) => { c.textContent = a.session; }},
  {title: "Reconnects", kind: "number", fill: (c, a) => { c.textContent = a.reconnects || ""; }},
  {title: "In its spool", kind: "number", fill: (c, a) => { c.textContent = a.spooled_bytes ? scaled(a.spooled_bytes, "B") : ""; }},
];

export const deviceColumns = [
  {title: "Device", kind: "name", fill: (c, d) => lines(c, d.model || d.serial, d.serial + ", " + d.via)},
  {title: "State", fill: (c, d) => lines(c, d.state, d.reason, d.state === "serving" ? "recording" : "")},
  {title: "What to do", kind: "name", fill: (c, d) => { c.textContent = d.advice; }},
  {title: "Agents", kind: "number", fill: (c, d) => { c.textContent = count(d.agents); }},
];
