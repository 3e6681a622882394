// ---- the chosen function, beside all views: its times, who calls it and whom it calls, and from the
// server of the page how long its calls took, with an example of each duration, and the slowest ones
const kRelatives = 6, kPlot = 90, kNear = 4;  // pixels
let chosenCalls = null;  // {durations, slowest, shift} of `chosen`, once they are there
let asking = null;       // AbortController
function element(tag, text, ...inner) {
  const made = document.createElement(tag);
  made.textContent = text;
  made.append(...inner);
  return made;
}
function button(text, title, does) {
  const made = element("button", text);
  made.title = title;
  made.addEventListener("click", does);
  return made;
}

// Chosen in one view, it is lit in all of them; "": none is. `isStep`: Back leads to what was before.
// `isOfFlame`: in the flame graph itself, which keeps its centre.
function choose(name, isStep, isOfFlame = false) {
  if (shape === "around" && !isOfFlame && name !== "" && names[centre] !== name) {
    centre = names.indexOf(name);
    if (current() === "flame") redrawFlame(); else { flameRange.reset(); selected = 0; }
  }
  if (name !== chosen) {
    chosen = name;
    chosenCalls = null;
    fillPanel();
    askCalls();
  }
  views[current()].draw();
  keep(isStep);
}
function fillPanel() {
  $("panel").hidden = chosen === "";
  $("work").classList.toggle("has-panel", chosen !== "");
  if (chosen === "") return;
  const number = names.indexOf(chosen), row = data.functions.find(f => f[0] === number);
  $("chosen").textContent = shortOf(number);
  $("chosen").title = chosen;
  $("chosen-place").textContent = [moduleOf(number), places[number]].filter(text => text).join(", ");
  fillTimes(row);
  fillRelatives("callers", number);
  fillRelatives("callees", number);
  $("durations").hidden = true;
  $("slowest").textContent = $("percentiles").textContent = "";
  $("calls-said").textContent = canAsk ? "reads its calls …" : "Durations and single calls are on a page that is served: collectctl open SESSION.";
}
function fillTimes(row) {
  const table = $("chosen-times");
  table.textContent = "";
  if (row === undefined) return;
  const add = (what, ns, all) => {
    const line = table.insertRow();
    for (const text of [what, time(ns), all === undefined ? "" : percent(ns, all)]) line.insertCell().textContent = text;
  };
  if (hasWaits) add("Self CPU", selfCpu(row), allCpu);
  add("Self", row[3], allSelf);
  if (hasWaits) add("of it off the processor", row[kSelfWaited]);
  add("Total", row[2], allSelf);
  add("Average", value(row, 8));
  table.insertRow().append(element("td", "Calls"), element("td", count(row[1])));
}
const kMostName = 20;
// Class and function, which say most.
function endOf(name) {
  const end = name.replaceAll("<…>", "").replace("(…)", "()").split("::").slice(-2).join("::");
  return end.length > kMostName ? "…" + end.slice(1 - kMostName) : end;
}
// By the call trees of all threads; a recursive function is its own caller and callee.
function relativesOf(number, which) {
  const t = plainTree("all"), found = new Map();
  for (let i = 1; i < t.name.length; ++i) {
    if (t.name[i] !== number) continue;
    for (const [relative, counted] of which === "callers" ? [[t.parent[i], i]] : t.children[i].map(child => [child, child])) {
      const sum = found.get(t.name[relative]) ?? {name: t.name[relative], total: 0, calls: 0};
      sum.total += t.total[counted];
      sum.calls += t.calls[counted];
      found.set(sum.name, sum);
    }
  }
  return [...found.values()].sort((a, b) => b.total - a.total);
}
function fillRelatives(which, number) {
  const all = relativesOf(number, which), list = $(which);
  list.textContent = "";
  for (const {name, total, calls} of all.slice(0, kRelatives)) {
    const line = list.insertRow(), cell = line.insertCell();
    if (name >= 0) cell.append(button(endOf(shortOf(name)), names[name], () => choose(names[name], true)));
    else cell.textContent = name === -1 ? "no caller was recorded" : nameOf(name);
    line.insertCell().textContent = time(total);
    line.insertCell().textContent = counted(calls, "call");
  }
  if (all.length === 0) list.insertRow().insertCell().textContent = "none";
  if (all.length > kRelatives) list.insertRow().insertCell().textContent = "and " + count(all.length - kRelatives) + " more";
}

// ---- its calls
async function askCalls() {
  asking?.abort();
  if (!canAsk || chosen === "") return;
  const own = asking = new AbortController();
  const when = part === null ? "first=0&last=18446744073709551615" : windowQuery(...part);
  try {
    const answer = await ask("function", when + "&name=" + encodeURIComponent(chosen), "json", own.signal);
    if (own !== asking) return;
    chosenCalls = {...answer, shift: Number(BigInt(answer.origin) - origin)};
    $("calls-said").textContent = answer.durations.length === 0 ? "No call of it is whole." : "";
    fillCalls();
  } catch (error) {
    if (own === asking) $("calls-said").textContent = error.message;
  }
}
function fillCalls() {
  $("durations").hidden = chosenCalls.durations.length === 0;
  drawDurations();
  const line = $("percentiles");
  line.textContent = "";
  for (const [label, perMille] of [["p50", 500], ["p90", 900], ["p99", 990], ["p99.9", 999]]) {
    const duration = durationOf(perMille);
    if (duration !== null) line.append(button(label + " " + time(middleOf(duration)), "Show the longest of the calls that took about this long", () => jumpTo(duration[3])));
  }
  for (const found of chosenCalls.slowest) {
    const row = $("slowest").insertRow(), thread = data.threads.find(t => t.number === found.thread);
    row.title = "in " + (thread?.name ?? "thread_" + found.thread);
    row.insertCell().append(button(time(found.bar[kTotal]), "Show this call on the time line", () => jumpTo(found)));
    row.insertCell().textContent = hasWaits ? time(found.bar[kTotal] - found.waited) + " CPU" : "";
    row.insertCell().textContent = "at " + since((found.bar[kBegin] + chosenCalls.shift) / span) + (found.bar[kWhole] ? "" : ", at least");
  }
}
// What so many of a thousand calls did not take longer than: the duration of the nearest rank.
function durationOf(perMille) {
  const all = chosenCalls.durations.reduce((sum, [, , calls]) => sum + calls, 0), rank = Math.ceil(all * perMille / 1000);
  let seen = 0;
  return chosenCalls.durations.find(([, , calls]) => (seen += calls) >= rank) ?? null;
}
const middleOf = ([first, last]) => Math.min(first + (last - first + 1) / 2, chosenCalls.durations.at(-1)[3].bar[kTotal]);
// Where a duration is on the logarithmic axis, of 0 to 1.
function placeOnAxis(ns) {
  const {durations} = chosenCalls, low = Math.log2(durations[0][0] + 1), high = Math.log2(durations.at(-1)[1] + 2);
  return (Math.log2(ns + 1) - low) / (high - low);
}
function drawDurations() {
  if (chosenCalls === null || chosenCalls.durations.length === 0) return;
  const [g, width] = prepare($("durations"), kPlot), {durations} = chosenCalls;
  const most = durations.reduce((most, [, , calls]) => Math.max(most, calls), 0), height = kPlot - 18;
  g.fillStyle = css("--busy");
  for (const [first, last, calls] of durations) {
    const x = placeOnAxis(first) * width, end = placeOnAxis(last + 1) * width, h = Math.max(2, height * Math.log1p(calls) / Math.log1p(most));
    g.fillRect(x, height - h, Math.max(1, end - x - 0.5), h);
  }
  g.fillStyle = css("--dim");
  g.fillRect(0, height, width, 1);
  const shortest = time(durations[0][0]), longest = time(durations.at(-1)[3].bar[kTotal]);
  g.fillText(shortest, 0, height + 10);
  g.fillText(longest, width - g.measureText(longest).width, height + 10);
}
function durationAt(event) {
  const width = $("durations").clientWidth;
  let best = null, least = kNear;
  for (const one of chosenCalls?.durations ?? []) {
    const x = placeOnAxis(one[0]) * width, end = placeOnAxis(one[1] + 1) * width;
    const away = Math.max(x - event.offsetX, event.offsetX - end, 0);
    if (away < least) [best, least] = [one, away];
  }
  return best;
}
$("durations").addEventListener("mousemove", event => {
  const found = durationAt(event);
  $("calls-said").textContent = found === null ? "" : counted(found[2], "call") + " of " + time(found[0]) + (found[1] > found[0] ? " to " + time(found[1]) : "") + "; click: the longest of them";
});
$("durations").addEventListener("mouseleave", () => { $("calls-said").textContent = ""; });
$("durations").addEventListener("click", event => { const found = durationAt(event); if (found !== null) jumpTo(found[3]); });

// To this very call on the time line.
function jumpTo(found) {
  const thread = data.threads.find(t => t.number === found.thread);
  if (thread === undefined) { $("calls-said").textContent = "its thread is not on this page"; return; }
  const bar = found.bar.slice();
  bar[kName] = names.indexOf(chosen);
  show("time");
  const [low, high] = barEnds(bar, chosenCalls.shift), around = Math.max(high - low, timeRange.least);
  timeRange.show(low - around, high + around);
  selectBar({thread, bar, shift: chosenCalls.shift});
  showBar(selectedBar);
  lanes[data.threads.indexOf(thread)].element.scrollIntoView({block: "nearest"});
}
$("close").addEventListener("click", () => choose("", true));
