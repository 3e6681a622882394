// ---- registers and stack of the selected call, in the panel: at its begin beside its end
async function askRecords(found) {
  const {thread, bar} = found;
  found.records = {};
  fillRecords();
  if (!canAsk || !isCall(bar)) return;
  for (const [what, number] of [["begin", bar[kRecord]], ["end", bar[kEndRecord]]]) {
    if (number < 0) continue;
    try {
      found.records[what] = await ask("record", "thread=" + thread.number + "&record=" + number, "json");
    } catch (error) {
      found.records[what] = {error: error.message};
    }
    if (selectedBar === found) fillRecords();
  }
}
function fillRecords() {
  const place = $("records"), {begin, end} = selectedBar?.records ?? {};
  place.textContent = "";
  if (begin === undefined && end === undefined) return;
  for (const [what, one] of [["begin", begin], ["end", end]]) if (one?.error) place.append(element("div", what + ": " + one.error));
  const names = [...new Set([begin, end].flatMap(one => Object.keys(one?.record?.registers ?? {})))];
  if (names.length !== 0) place.append(element("h3", "Registers"), registerTable(names, begin, end));
  for (const [what, one] of [["begin", begin], ["end", end]]) {
    if (one?.record?.stack) place.append(element("h3", "Stack at its " + what + ", from sp on"), stackTable(one));
  }
  if (place.textContent === "") place.append(element("div", "Its detail record has neither registers nor stack."));
}
function registerTable(names, begin, end) {
  const table = element("table", "");
  table.className = "words";
  table.append(element("tr", "", element("td", ""), element("td", "begin"), element("td", "end")));
  for (const name of names) {
    const row = table.insertRow(), values = [begin, end].map(one => one?.record?.registers?.[name]);
    row.append(element("td", name));
    values.forEach((value, i) => {
      const cell = wordCell(value ?? "", [begin, end][i]);
      if (i === 1 && values[0] !== undefined && value !== undefined && value !== values[0]) {
        cell.className = "changed";
        cell.title = "it has changed";
      }
      row.append(cell);
    });
  }
  return table;
}
// A value, and the function that it points into.
function wordCell(value, answer) {
  const into = answer?.functions?.[value], cell = element("td", value);
  if (into !== undefined) {
    const name = element("div", shorten(into));
    name.title = into;
    cell.append(name);
  }
  return cell;
}
const kWord = 16;  // digits of 8 bytes
function stackTable(answer) {
  const table = element("table", ""), {stack} = answer.record;
  table.className = "words";
  for (let at = 0; at < stack.length; at += kWord) {
    const bytes = stack.slice(at, at + kWord).match(/../g), value = "0x" + BigInt("0x" + [...bytes].reverse().join("")).toString(16);
    const text = bytes.map(byte => { const c = parseInt(byte, 16); return c >= 0x20 && c < 0x7f ? String.fromCharCode(c) : "·"; }).join("");
    table.append(element("tr", "", element("td", "+" + at / 2), bytes.length === kWord / 2 ? wordCell(value, answer) : element("td", bytes.join("")), element("td", text)));
  }
  return table;
}
