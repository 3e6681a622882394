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

// Items in the order in which they come, or by a column whose head was clicked: by its `value`.
export class Table {
  constructor(element, columns, keyOf) {
    this.columns = columns;
    this.keyOf = keyOf;
    this.rows = new Map();
    this.items = [];
    this.sortBy = null;
    this.isUp = false;
    const head = element.createTHead().insertRow();
    for (const column of columns) {
      const cell = document.createElement("th");
      if (column.kind) cell.className = column.kind;
      cell.textContent = column.title;
      if (column.value) {
        cell.tabIndex = 0;
        cell.setAttribute("aria-sort", "none");
        const sort = () => this.sort(column, head);
        cell.addEventListener("click", sort);
        cell.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
      }
      head.append(cell);
    }
    this.body = element.createTBody();
  }
  // The largest first, then the smallest, then as they come.
  sort(column, head) {
    if (this.sortBy !== column) [this.sortBy, this.isUp] = [column, false];
    else if (!this.isUp) this.isUp = true;
    else this.sortBy = null;
    this.columns.forEach((one, i) => {
      if (one.value) head.cells[i].setAttribute("aria-sort", one !== this.sortBy ? "none" : this.isUp ? "ascending" : "descending");
    });
    this.show(this.items);
  }
  sorted() {
    if (this.sortBy === null) return this.items;
    const {value} = this.sortBy, sign = this.isUp ? 1 : -1;
    return [...this.items].sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * sign; });
  }
  show(items) {
    this.items = items;
    const gone = new Set(this.rows.keys());
    let before = null;
    for (const item of this.sorted()) {
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
  if (cell.lastChild === null) cell.append(make("span", ""), make("span", "", "under"));
  const small = cell.lastChild, large = small.previousSibling;
  large.textContent = text;
  large.className = kind || "";
  small.textContent = under || "";
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

function make(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
const counted = n => count(n) + (n === 1 ? " function" : " functions");
const patterns = text => text.split(";").map(part => part.trim()).filter(part => part !== "");

// What is typed in place, for an action: [title, fields, action, what to send, what then was done].
const forms = [
  ["Marker", [["text", "What happens now?"]], "marker", typed => ({text: typed.text}), (sent, typed) => "marker put: " + typed.text],
  ["Filter", [["only", "Record only …  (names or patterns with *, several with ;)"], ["except", "and none of …"]], "filter",
    typed => ({only: patterns(typed.only), except: patterns(typed.except)}),
    (sent, typed) => patterns(typed.only).length + patterns(typed.except).length === 0 ? "every function is recorded" : counted(sent.functions_matched) + " recorded from now on"],
  ["Trigger", [["functions", "A second of detail when this is called … (empty: no more)"], ["ms", "or takes longer than … ms"]], "trigger",
    typed => ({functions: patterns(typed.functions), ...(typed.ms ? {longer_than_ms: Number(typed.ms)} : {})}),
    (sent, typed) => patterns(typed.functions).length === 0 ? "no trigger any more" : "waits for " + counted(sent.functions_matched)],
];

// `run(action, session, more, done)` sends a request and says how it ended; `later(text, does)` does
// so after some seconds in which it can be undone; `tick` and `isTicked` say which are compared.
export function sessionColumns({run, later, tick, isTicked}) {
  const buttons = [
    ["Detail on", s => !s.sealed && s.detail !== "on", s => run("detail", s, {mode: "on"}, () => "detail is on")],
    ["Detail off", s => !s.sealed && s.detail === "on", s => run("detail", s, {mode: "off"}, () => "detail is off")],
    ...forms.map(form => [form[0], s => !s.sealed, (s, state) => openForm(form, state)]),
    ["Snapshot", s => !s.sealed, s => run("snapshot", s, {}, sent => "copied to " + sent.session)],
    ["Stop", s => !s.sealed, s => later("Stops the recording of " + s.process + " (" + s.pid + ")", () => run("stop", s, {}, () => "sealed"))],
    ["Start", s => s.sealed && s.isIdle, s => run("start", s, {}, () => "records again")],
    ["Delete", s => s.sealed, s => later("Deletes " + s.name + ", " + scaled(s.bytes, "B"), () => run("delete", s, {}, () => "deleted"))],
  ];
  function openForm([title, fields, action, toSend, words], state) {
    state.form?.remove();
    const form = state.form = make("form", "", "typed"), inputs = {};
    for (const [name, hint] of fields) {
      const input = inputs[name] = document.createElement("input");
      input.placeholder = hint;
      input.setAttribute("aria-label", hint);
      form.append(input);
    }
    form.append(make("button", title));
    form.addEventListener("keydown", event => { if (event.key === "Escape") form.remove(); });
    form.addEventListener("submit", async event => {
      event.preventDefault();
      const typed = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
      if (await run(action, state.item, toSend(typed), sent => words(sent, typed))) form.remove();
    });
    state.place.append(form);
    form.firstChild.focus();
  }
  function actions(cell, item, state) {
    state.item = item;
    if (cell.firstChild === null) {
      const all = make("div", ""), link = make("a", "Open", "button");
      state.place = cell;
      link.target = "_blank";
      link.href = "/sessions/" + item.name;
      all.append(link);
      for (const [title, , press] of buttons) {
        const button = make("button", title);
        button.addEventListener("click", async () => {
          button.disabled = true;
          try { await press(state.item, state); } finally { button.disabled = false; }
        });
        all.append(button);
      }
      cell.append(all);
    }
    if (item.sealed) state.form?.remove();
    buttons.forEach(([, applies], i) => { cell.firstChild.children[i + 1].hidden = !applies(item); });
  }
  function program(cell, s, state) {
    lines(cell, (s.process || "process") + " (" + s.pid + ")" + (s.device ? " on " + s.device : ""), s.name + (s.tag ? ", " + s.tag : ""));
    if (state.box === undefined) {
      const box = state.box = document.createElement("input");
      box.type = "checkbox";
      box.title = "Compare: tick two";
      box.addEventListener("change", () => tick(state.ticked, box.checked));
      cell.prepend(box);
    }
    state.ticked = s;
    state.box.checked = isTicked(s);
  }
  const took = s => (s.end_ms ?? Date.now()) - s.start_ms;
  return [
    {title: "Program", kind: "name", value: s => s.process, fill: program},
    {title: "Started", value: s => s.start_ms, fill: (c, s) => lines(c, new Date(s.start_ms).toLocaleTimeString(), new Date(s.start_ms).toLocaleDateString())},
    {title: "Took", kind: "number", value: took, fill: (c, s) => { c.textContent = time(1e6 * took(s)); }},
    {title: "State", value: s => s.state, fill: (c, s) => lines(c, s.state, s.health, s.state === "active" ? "recording" : s.sealed && s.health ? "bad" : "")},
    {title: "Threads", kind: "number", value: s => s.threads, fill: (c, s) => { c.textContent = count(s.threads); }},
    {title: "Events", kind: "number", value: s => s.events, fill: (c, s) => lines(c, count(s.events), s.sealed ? "" : scaled(s.events_per_second, "/s"))},
    {title: "Last minute", fill: drawRates},
    {title: "Lost", kind: "number", value: s => s.lost_events, fill: (c, s) => lines(c, count(s.lost_events), [s.lost_detail_records ? count(s.lost_detail_records) + " of detail" : "", s.sealed && !s.losses_known ? "and more" : ""].filter(Boolean).join(", "), s.lost_events > 0 ? "bad" : "")},
    {title: "Stalled", kind: "number", value: s => s.stalled_ns, fill: (c, s) => lines(c, s.stalls ? time(s.stalled_ns) : "", s.stalls ? count(s.stalls) + " times" : "")},
    {title: "Size", kind: "number", value: s => s.bytes, fill: (c, s) => lines(c, scaled(s.bytes, "B"), s.sealed ? "" : scaled(s.bytes_per_second, "B/s"))},
    {title: "Detail", kind: "number", value: s => s.detail_records, fill: (c, s) => lines(c, s.detail, s.detail_records ? count(s.detail_records) : "")},
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
