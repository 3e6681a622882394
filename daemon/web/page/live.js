// The live page: exchanges the token in its address for a cookie, shows what the collector sends,
// and asks it for what the buttons say.
import {Table, agentColumns, count, deviceColumns, scaled, sessionColumns} from "/sessions.js";

const $ = id => document.getElementById(id);

function say(sentence) {
  $("message").textContent = sentence;
  $("message").hidden = sentence === "";
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

async function run(action, session, more) {
  try {
    await post("/api/" + action, {session: session.name, ...more});
    say("");
  } catch (error) {
    say(session.process + " (" + session.pid + "): " + error.message);
  }
}

const sessions = new Table($("sessions"), sessionColumns(run), s => s.name);
const agents = new Table($("agents"), agentColumns, a => a.name);
const devices = new Table($("devices"), deviceColumns, d => d.via + d.serial);

function show(state) {
  // Agents that are there and do not record, by the session that each of them had last.
  const idle = new Set(state.agents.filter(a => a.state === "connected").map(a => a.session));
  for (const session of state.sessions) session.isIdle = idle.has(session.name);
  sessions.show(state.sessions);
  agents.show(state.agents);
  devices.show(state.devices);
  const recording = state.sessions.filter(s => !s.sealed);
  const rate = recording.reduce((sum, s) => sum + s.events_per_second, 0);
  $("now").textContent = recording.length === 0 ? "nothing records" : count(recording.length) + (recording.length === 1 ? " session records, " : " sessions record, ") + scaled(rate, "").trim() + " events/s";
  $("no-sessions").hidden = state.sessions.length !== 0;
  $("no-agents").hidden = state.agents.length !== 0;
  $("devices-section").hidden = state.devices.length === 0;
  $("more-sessions").hidden = state.sessions_left_out === 0;
  $("more-sessions").textContent = count(state.sessions_left_out) + " older sessions are not shown: collectctl sessions";
}

function listen() {
  const events = new EventSource("/api/events");
  let isSignedIn = false;
  events.addEventListener("state", event => {
    isSignedIn = true;
    const state = JSON.parse(event.data);
    if (state.opens !== undefined) location.replace("/sessions/" + state.opens);  // collectctl open
    else show(state);
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
