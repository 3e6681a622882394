// ---- functions
const kSelfWaited = 7, kSelfCpu = 9;
// Times of all calls in ms, of one call in µs: so that a column has one unit, and is exact to its last digit.
const columns = [["Function", 0], ...(hasWaits ? [["Self CPU, ms", kSelfCpu], ["%", kSelfCpu]] : []), ["Total, ms", 2], ["%", 2], ["Self, ms", 3], ["%", 3], ["Calls", 1], ["Average, µs", 8], ["p50, µs", 4], ["p99, µs", 5], ["Longest, µs", 6]];
const kOfPanel = new Set([3, 8, 4, 5, 6]);  // fields that the panel has: not beside it
const kMostRows = 2000;
let sortBy = hasWaits ? kSelfCpu : 2, ascending = false;
let allSelf = 0, allCpu = 0;
const selfCpu = f => f[3] - (f[kSelfWaited] ?? 0);
function sumFunctions() {
  allSelf = data.functions.reduce((sum, f) => sum + f[3], 0);
  allCpu = data.functions.reduce((sum, f) => sum + selfCpu(f), 0);
}
sumFunctions();
const value = (f, column) => column === kSelfCpu ? selfCpu(f) : column === 8 ? f[2] / Math.max(f[1], 1) : column === 0 ? names[f[0]] : f[column];
const kDigits = new Intl.NumberFormat("en", {minimumFractionDigits: 3, maximumFractionDigits: 3});
const inMs = ns => kDigits.format(ns / 1e6), inUs = ns => kDigits.format(ns / 1e3);
const textsOf = f => [shortOf(f[0]), ...(hasWaits ? [inMs(selfCpu(f)), percent(selfCpu(f), allCpu)] : []), inMs(f[2]), percent(f[2], allSelf), inMs(f[3]), percent(f[3], allSelf), count(f[1]), inUs(value(f, 8)), ...(f[6] > 0 ? [f[4], f[5], f[6]].map(inUs) : ["", "", ""])];
function drawFunctions() {
  const rows = data.functions.filter(f => wanted === "" || isFound(names[f[0]]));
  rows.sort((a, b) => {
    const x = value(a, sortBy), y = value(b, sortBy);
    return (x < y ? -1 : x > y ? 1 : 0) * (ascending ? 1 : -1);
  });
  const body = $("rows");
  body.textContent = "";
  for (const f of rows.slice(0, kMostRows)) {
    const row = body.insertRow();
    textsOf(f).forEach((text, i) => {
      const cell = row.insertCell();
      cell.textContent = text;
      cell.classList.toggle("of-panel", kOfPanel.has(columns[i][1]));
    });
    row.firstChild.title = names[f[0]];
    row.dataset.name = f[0];
    row.classList.toggle("selected", names[f[0]] === chosen);
  }
  for (const cell of $("head").cells) {
    const isSorted = columns[cell.cellIndex][1] === sortBy;
    cell.setAttribute("aria-sort", !isSorted ? "none" : ascending ? "ascending" : "descending");
    cell.textContent = columns[cell.cellIndex][0] + (!isSorted || columns[cell.cellIndex][0] === "%" ? "" : ascending ? " ▴" : " ▾");
  }
  $("reset").hidden = chosen === "";
  $("found").textContent = count(rows.length) + " functions" + (rows.length > kMostRows ? ", the first " + count(kMostRows) + " shown" : "");
  $("detail").textContent = chosen === "" ? "Select a function: it is lit in all views." : chosen + placeOf(names.indexOf(chosen));
}
function chooseRow(row) {
  choose(names[Number(row.dataset.name)], true);
  showChosenRow();
}
function showChosenRow() {
  const row = $("rows").querySelector(".selected");
  if (row !== null) row.scrollIntoView({block: "nearest"});
}
function chooseBeside(key) {
  const rows = [...$("rows").rows], at = rows.findIndex(row => names[Number(row.dataset.name)] === chosen);
  const to = rows[at < 0 ? 0 : at + (key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0)];
  if (to !== undefined) chooseRow(to);
}
const functions = {
  draw: drawFunctions,
  clear: () => choose("", true),
  next: () => chooseBeside("ArrowDown"),
  arrow: chooseBeside,
};
for (const [title, column] of columns) {
  const cell = document.createElement("th");
  cell.textContent = title;
  cell.classList.toggle("of-panel", kOfPanel.has(column));
  cell.addEventListener("click", () => { ascending = sortBy === column ? !ascending : column === 0; sortBy = column; drawFunctions(); keep(); });
  $("head").append(cell);
}
$("rows").addEventListener("click", e => { const row = e.target.closest("tr"); if (row) chooseRow(row); });
