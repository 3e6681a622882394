"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const names = data.names, places = data.places;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- words
function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (ns >= size) return (ns / size).toPrecision(4) + " " + unit;
  return Math.round(ns) + " ns";
}
const count = n => n.toLocaleString("en");
const counted = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");
const percent = (part, all) => all > 0 ? (100 * part / all).toFixed(part / all < 0.1 ? 2 : 1) + " %" : "";
const nameOf = i => i >= 0 ? names[i] : ["all", "after a loss", "other paths"][-1 - i];

const moduleOf = i => i >= 0 ? data.modules.names[data.modules.of[i]] : "";
const placeOf = i => i >= 0 && places[i] ? "\n" + places[i] : "";

// A C++ name without template arguments, arguments and return type, which are often long.
function shorten(name) {
  const text = name.replaceAll("(anonymous namespace)", "{anonymous}").replace(/^decltype ?\(/, "(");
  let out = "", angles = 0, round = 0, braces = 0, isOver = false;
  for (let i = 0; i < text.length && !isOver; ++i) {
    const c = text[i], isOuter = angles + round === 0;
    if (braces > 0 || c === "{") {
      braces += c === "{" ? 1 : c === "}" ? -1 : 0;
      if (isOuter) out += c;
    } else if (isOuter && c === "(" && out.endsWith("operator")) {
      out += "()";
      ++i;
    } else if (isOuter && (c === "<" ? /operator<?$/.test(out) : c === ">" && /operator(>|-|<=)?$/.test(out))) {
      out += c;
    } else if (c === "<" && round === 0) {
      if (angles++ === 0) out += "<…>";
    } else if (c === ">" && round === 0) {
      angles -= angles > 0 ? 1 : 0;
    } else if (c === "(" && angles === 0) {
      if (round++ === 0 && out !== "") out += text[i + 1] === ")" ? "()" : "(…)";
    } else if (c === ")" && angles === 0) {
      if (round > 0 && --round === 0) isOver = out !== "";
    } else if (isOuter) {
      out += c;
    }
  }
  if (angles + round + braces !== 0 || out.startsWith("<")) return name;
  const begin = out.search(/operator\W/), head = begin >= 0 ? out.slice(0, begin) : out;
  const from = isOver ? head.lastIndexOf(" ") + 1 : 0;  // the return type is before it
  return out.slice(from).trim().replaceAll("{anonymous}", "(anonymous namespace)");
}
const shortNames = [];
const shortOf = i => i >= 0 ? shortNames[i] ??= shorten(names[i]) : nameOf(i);

function optionOf(value, text) {
  const option = element("option", text);
  option.value = value;
  return option;
}

// ---- what is seen of a width: from `low` to `high` of 0 to 1
class Range {
  constructor(least) { this.least = least; this.reset(); }
  reset() { this.low = 0; this.high = 1; }
  get span() { return this.high - this.low; }
  get isWhole() { return this.low === 0 && this.high === 1; }
  show(low, high) {
    const span = Math.min(1, Math.max(this.least, high - low));
    this.low = Math.min(1 - span, Math.max(0, low + (high - low - span) / 2));
    this.high = span === 1 ? 1 : this.low + span;
  }
  zoom(factor, at) {  // `at` of the seen width stays where it is
    const span = Math.min(1, Math.max(this.least, this.span * factor)), point = this.low + this.span * at;
    this.show(point - span * at, point - span * at + span);
  }
  pan(share) {
    const by = Math.max(-this.low, Math.min(1 - this.high, share * this.span));
    this.show(this.low + by, this.high + by);
  }
  x(position, width) { return (position - this.low) / this.span * width; }
  position(x, width) { return this.low + x / width * this.span; }
}

// A canvas of this height, ready to be drawn in CSS pixels.
function prepare(canvas, height) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth || 800;
  const g = canvas.getContext("2d"), pixels = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    canvas.style.height = height + "px";
    [canvas.width, canvas.height] = pixels;
  } else {
    g.clearRect(0, 0, ...pixels);
  }
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.globalAlpha = 1;
  g.font = "12px system-ui,sans-serif";
  g.textBaseline = "middle";
  return [g, width];
}

// What all views share: which function is chosen, what is searched.
let chosen = "", wanted = "";
const foundNames = new Map();
let foundFor = "";
function isFound(name) {
  if (wanted === "") return false;
  if (foundFor !== wanted) { foundNames.clear(); foundFor = wanted; }
  let is = foundNames.get(name);
  if (is === undefined) foundNames.set(name, is = name.toLowerCase().includes(wanted));
  return is;
}

// Draws what is shown with the next picture of the browser, however often it is asked to.
let frame = 0;
function drawSoon() {
  frame ||= requestAnimationFrame(() => { frame = 0; views[current()].draw(); });
}

// ---- what is under the pointer, beside it
function say(text, event) {
  const tip = $("tip");
  tip.hidden = text === "";
  if (tip.hidden) return;
  tip.textContent = text;
  const {offsetWidth: width, offsetHeight: height} = tip, left = event.clientX + 14, top = event.clientY + 16;
  tip.style.left = Math.max(0, left + width > innerWidth ? event.clientX - width - 8 : left) + "px";
  tip.style.top = Math.max(0, top + height > innerHeight ? event.clientY - height - 8 : top) + "px";
}
