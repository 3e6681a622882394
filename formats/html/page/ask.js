// ---- what only the server of the page can say: parts of the time in full, detail records, Perfetto traces
const canAsk = data.can_ask === true;
const origin = BigInt(data.origin);  // times beyond 2^53 ns lose their last digits as numbers
const absolute = ns => origin + BigInt(Math.max(0, Math.round(ns)));
const kAskAfter = 150;  // ms without a change of what is seen
let perfettoUi = "https://ui.perfetto.dev";  // or that of a folder which the server was given
if (canAsk) fetch("/api/viewer").then(answer => answer.json()).then(viewer => {
  perfettoUi = viewer.perfetto ?? perfettoUi;
  if (!viewer.is_held_by_pages) return;
  const presence = new EventSource("/api/events");  // the server ends where there is none
  presence.addEventListener("open", () => { $("asked").textContent = ""; });
  presence.addEventListener("error", () => { $("asked").textContent = "collectctl open has ended: start it again for single calls"; });
}).catch(() => {});

async function ask(what, query, how, signal) {
  const answer = await fetch(location.pathname + "/" + what + "?" + query, {signal});
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer[how]();
}
const windowQuery = (first, last) => "first=" + absolute(first) + "&last=" + absolute(last);

// Names of an answer by the numbers of this page.
const nameNumbers = new Map(names.map((name, i) => [name, i]));
function adopt(answer) {
  const numbers = answer.names.map((name, i) => {
    if (!nameNumbers.has(name)) {
      nameNumbers.set(name, names.length);
      names.push(name);
      places.push(answer.places[i]);
      data.modules.of.push(data.modules.names.push(answer.modules.names[answer.modules.of[i]]) - 1);
    }
    return nameNumbers.get(name);
  });
  for (const thread of answer.threads) {
    for (const bar of thread.bars) bar[kName] = numbers[bar[kName]];
    thread.tree.name = thread.tree.name.map(n => n >= 0 ? numbers[n] : n);
  }
  for (const f of answer.functions) f[0] = numbers[f[0]];
  answer.shift = Number(BigInt(answer.origin) - origin);
  return answer;
}

// ---- a close-up of the time line
let askTimer = 0, isAsking = false;
function needsCloseUp() {
  const first = timeRange.low * span, last = timeRange.high * span, seen = last - first;
  if (data.threads.every(t => t.all_calls) && seen > span / 4) return false;
  return closeUp === null || closeUp.first > first + 1 || closeUp.last < last - 1 || closeUp.last - closeUp.first > 8 * seen;
}
function askLater() {
  if (!canAsk || timeRange.isWhole) return;
  clearTimeout(askTimer);
  askTimer = setTimeout(askCloseUp, kAskAfter);
}
async function askCloseUp() {
  if (isAsking || !needsCloseUp()) return;
  isAsking = true;
  const first = timeRange.low * span, last = timeRange.high * span, more = (last - first) / 2;
  const from = Math.max(0, first - more), to = Math.min(span, last + more);
  try {
    const answer = adopt(await ask("bars", windowQuery(from, to), "json"));
    closeUp = {first: from, last: to, shift: answer.shift, part: partOf(answer.last_ns - answer.first_ns), threads: answer.threads};
    $("asked").textContent = "";
  } catch (error) {
    $("asked").textContent = error.message;
  }
  isAsking = false;
  if (current() === "time") drawTime();
}

// ---- a recording, which the time line follows until it is moved
const kFollowAfter = 500, kFollowShare = 4;  // ms; of the time that an answer took, at least
const kFollowed = 2e9;  // ns that are seen, at most when it begins
const followed = [];    // what came since the page was made: first, last ns, events of all threads
let isRecording = canAsk && data.is_recording === true, isFollowing = isRecording, followTimer = 0;
function setFollowing(follows) {
  if (isFollowing === follows) return;
  isFollowing = follows;
  $("follow").setAttribute("aria-pressed", follows);
  if (follows) followSoon(0);
}
function followSoon(after) {
  clearTimeout(followTimer);
  followTimer = setTimeout(follow, after);
}
async function follow() {
  if (!isFollowing || !isRecording || current() !== "time" || document.hidden) { if (isFollowing) followSoon(kFollowAfter); return; }
  const wide = Math.min(timeRange.span * span, timeRange.isWhole ? kFollowed : span), from = Math.max(0, span - wide), begun = performance.now();
  try {
    const answer = adopt(await ask("bars", "first=" + absolute(from) + "&last=18446744073709551615", "json"));
    if (!isFollowing || current() !== "time") return;
    isRecording = answer.is_recording === true;
    for (const thread of answer.threads) if (!data.threads.some(t => t.number === thread.number)) addThread(thread);
    const length = answer.last_ns - answer.first_ns;
    const before = span;
    grow(Math.max(span, answer.shift + length));
    if (span > before) followed.push([before, span, eventsBehind(before, answer, partOf(length))]);
    closeUp = {first: from, last: span, shift: answer.shift, part: partOf(length), threads: answer.threads};
    timeRange.show(1 - wide / span, 1);
    $("asked").textContent = isRecording ? "" : "The recording has ended: Refresh shows the whole";
    $("follow").hidden = !isRecording;
    placeLanes();
  } catch (error) {
    $("asked").textContent = error.message;
  }
  if (isRecording) followSoon(Math.max(kFollowAfter, kFollowShare * (performance.now() - begun)));
}
function eventsBehind(ns, answer, partNs) {
  const first = Math.ceil((ns - answer.shift) / partNs);
  return answer.threads.reduce((sum, thread) => thread.activity.reduce((all, n, i) => all + (i >= first ? n : 0), sum), 0);
}
// Moments are shares of the whole, which is longer now.
function grow(to) {
  const scale = span / to;
  span = to;
  timeRange.least = Math.min(1, 100 / span);
  timeRange.low *= scale;
  timeRange.high *= scale;
  for (const interval of [selectedTime, markedTime]) if (interval !== null) interval.forEach((at, i) => { interval[i] = at * scale; });
}

// ---- totals and flame graph of a part of the time
const whole = {threads: data.threads.map(t => t.tree), functions: data.functions};
let part = null;  // [first, last] in ns from the page's begin
function useTotals(threadTrees, functionRows, shown) {
  data.threads.forEach((thread, i) => { thread.tree = threadTrees[i]; });
  data.functions = functionRows;
  part = shown;
  trees.clear();
  colours = [];
  selected = 0; hovered = -1;
  flameRange.reset();
  sumFunctions();
  fillPanel();
  askCalls();
  $("part").hidden = part === null;
  $("part-text").textContent = part === null ? "" : "From " + since(part[0] / span) + " to " + since(part[1] / span) + " (" + time(part[1] - part[0]) + ")";
}
const noTree = {parent: [0], name: [-1], total: [0], self: [0], calls: [0]};
async function totalsOf(first, last) {
  const answer = adopt(await ask("window", windowQuery(first, last), "json"));
  return {trees: data.threads.map(t => answer.threads.find(a => a.number === t.number)?.tree ?? noTree), functions: answer.functions};
}
async function showPart(first, last) {
  $("asked").textContent = "…";
  try {
    const totals = await totalsOf(first, last);
    useTotals(totals.trees, totals.functions, [first, last]);
    $("asked").textContent = "";
  } catch (error) {
    $("asked").textContent = error.message;
  }
}
function showWhole() {
  useTotals(whole.threads, whole.functions, null);
  views[current()].draw();
  keep();
}

// ---- the flame graph against another part, or another session
async function compareWith(label, get) {
  $("asked").textContent = "…";
  try {
    const {trees: others} = await get(), made = {};
    base = {label, get tree() { return made[shapeKey()] ??= shaped(others); }};
    $("asked").textContent = "";
  } catch (error) {
    base = null;
    $("asked").textContent = error.message;
  }
  $("base").hidden = base === null;
  $("base-text").textContent = base === null ? "" : "Compared with " + base.label + ": red took a larger share of the time, blue a smaller one";
}

async function treesOfSession(session) {
  if (!/^[A-Za-z0-9_]+\/pid_[0-9]+$/.test(session)) throw new Error("the name of a session looks like session_20260131_235959/pid_4711");
  const answer = await fetch("/sessions/" + session + "/window?first=0&last=18446744073709551615");
  const read = await answer.json();
  if (!answer.ok) throw new Error(read.error);
  return {trees: adopt(read).threads.map(t => t.tree)};
}

// ---- Perfetto: the bytes are posted to its page, which the user opened by a click; nothing else leaves
async function openInPerfetto() {
  const opened = window.open(perfettoUi);
  const target = new URL(perfettoUi, location.href).origin;
  if (opened === null) { $("asked").textContent = "the browser opens no window"; return; }
  $("asked").textContent = "…";
  try {
    const buffer = await ask("perfetto", windowQuery(timeRange.low * span, timeRange.high * span), "arrayBuffer");
    await new Promise((done, fail) => {
      const ping = setInterval(() => opened.closed ? end(fail, new Error("the window of Perfetto was closed")) : opened.postMessage("PING", target), 100);
      const hear = event => { if (event.source === opened && event.origin === target && event.data === "PONG") end(done); };
      const end = (how, value) => { clearInterval(ping); window.removeEventListener("message", hear); how(value); };
      window.addEventListener("message", hear);
    });
    opened.postMessage({perfetto: {buffer, title: data.title}}, target, [buffer]);
    $("asked").textContent = "";
  } catch (error) {
    $("asked").textContent = error.message;
  }
}
