// The live page: exchanges the token in its address for a cookie, shows what the collector sends,
// and asks it for what the buttons say.
import {Table, agentColumns, count, deviceColumns, scaled, sessionColumns} from "/sessions.js";

const $ = id => document.getElementById(id);

// What went wrong stays, what was done goes by itself.
const kDoneFor = 6000, kUndoFor = 4000;  // ms
let doneTimer = 0;
function say(sentence, isDone = false) {
  clearTimeout(doneTimer);
  $("message").textContent = sentence;
  $("message").hidden = sentence === "";
  $("message").className = isDone ? "done" : "";
  if (isDone) doneTimer = setTimeout(() => say(""), kDoneFor);
}
// After some seconds, unless it is undone meanwhile.
function later(text, does) {
  return new Promise(done => {
    const line = document.createElement("p"), undo = document.createElement("button");
    line.append(text + " in " + kUndoFor / 1000 + " s ", undo);
    undo.textContent = "Undo";
    const timer = setTimeout(async () => { line.remove(); await does(); done(); }, kUndoFor);
    undo.addEventListener("click", () => { clearTimeout(timer); line.remove(); done(); });
    $("pending").append(line);
  });
}

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify(body),
  });
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error);
  return json;
}

// Whether it was done.
async function run(action, session, more, words) {
  const who = session.process + " (" + session.pid + "): ";
  try {
    say(who + words(await post("/api/" + action, {session: session.name, ...more})), true);
    return true;
  } catch (error) {
    say(who + error.message);
    return false;
  }
}

const ticked = new Map();
function tick(session, isTicked) {
  if (isTicked) ticked.set(session.name, session); else ticked.delete(session.name);
  $("compare").disabled = ticked.size !== 2;
}
// The newer one, compared with the older one.
$("compare").addEventListener("click", () => {
  const [older, newer] = [...ticked.values()].sort((a, b) => a.start_ms - b.start_ms);
  window.open("/sessions/" + newer.name + "#" + encodeURIComponent(JSON.stringify({view: "flame", base: {session: older.name}})));
});
$("wanted").addEventListener("input", () => { if (state !== null) show(state); });
const isWanted = session => [session.process, session.name, session.tag, session.device, String(session.pid)].join(" ").toLowerCase().includes($("wanted").value.toLowerCase());

const sessions = new Table($("sessions"), sessionColumns({run, later, tick, isTicked: s => ticked.has(s.name)}), s => s.name);
const agents = new Table($("agents"), agentColumns, a => a.name), gone = new Table($("gone"), agentColumns, a => a.name);
const devices = new Table($("devices"), deviceColumns, d => d.via + d.serial);

let state = null;  // the newest
function show(newest) {
  state = newest;
  // Agents that are there and do not record, by the session that each of them had last.
  const idle = new Set(state.agents.filter(a => a.state === "connected").map(a => a.session));
  for (const session of state.sessions) session.isIdle = idle.has(session.name);
  const shown = state.sessions.filter(isWanted);
  sessions.show(shown);
  $("not-wanted").hidden = shown.length !== 0 || state.sessions.length === 0;
  for (const name of ticked.keys()) if (!state.sessions.some(s => s.name === name)) tick({name}, false);
  const past = state.agents.filter(a => a.state === "gone");
  agents.show(state.agents.filter(a => a.state !== "gone"));
  gone.show(past);
  $("gone-agents").hidden = past.length === 0;
  $("gone-agents").firstElementChild.textContent = count(past.length) + (past.length === 1 ? " agent has gone" : " agents have gone");
  devices.show(state.devices);
  const recording = state.sessions.filter(s => !s.sealed);
  const rate = recording.reduce((sum, s) => sum + s.events_per_second, 0);
  $("now").textContent = recording.length === 0 ? "nothing records" : count(recording.length) + (recording.length === 1 ? " session records, " : " sessions record, ") + scaled(rate, "").trim() + " events/s";
  $("no-sessions").hidden = state.sessions.length !== 0;
  $("no-agents").hidden = state.agents.length !== past.length;
  $("agents").hidden = !$("no-agents").hidden;
  $("devices-section").hidden = state.devices.length === 0;
  $("more-sessions").hidden = state.sessions_left_out === 0;
  $("more-sessions").textContent = count(state.sessions_left_out) + " older sessions are not shown: collectctl sessions";
}

function listen() {
  const events = new EventSource("/api/events");
  let isSignedIn = false;
  events.addEventListener("state", event => {
    isSignedIn = true;
    const sent = JSON.parse(event.data);
    if (sent.opens !== undefined) location.replace("/sessions/" + sent.opens);  // collectctl open
    else show(sent);
  });
  events.addEventListener("open", () => say(""));
  events.addEventListener("error", () => {
    $("now").textContent = "no connection";
    if (events.readyState !== EventSource.CLOSED) return;  // it tries again by itself
    say(isSignedIn ? "The collector was started again, and has another address now: it prints it at its start."
                   : "Open the address that collectord printed, with its token. Every start of it has another one.");
  });
}

async function start() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) {
    history.replaceState(null, "", "/");  // so that it does not stay in the history
    try {
      await post("/api/sign-in", {token});
    } catch (error) {
      say(error.message);
      return;
    }
  }
  listen();
}
start();
