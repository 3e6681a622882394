#!/usr/bin/env python3
"""browser_calls_test.py BIN LIB ARTIFACTS: single calls on the page of a session in a real browser:
zoom from the whole to one call, what a call was, with registers and stack; totals of a part of the
time beside those of `collectctl report`; one part against another; a Perfetto trace that is posted
to a viewer. As browser_test.py, from which it takes the rest."""

import json
import os
import signal
import subprocess
import sys
import unittest

from browser_test import AXIS, BOX, CHOSEN, COLLECTCTL, DETAIL, PageTest, SUMS, in_ms, leave_without_browser, time_text
from collector import PATIENCE, eventually

# Bars of the first thread as they are drawn: what the page has, or what was asked for.
DRAWN = "const {bars, shift, all} = barsOf(data.threads[0]); return {count: bars.length, all, shift, calls: bars.filter(isCall).length};"
HAS_CALL = "return barsOf(data.threads[0]).bars.some(b => isCall(b) && nameOf(b[kName]).includes(arguments[0]) && b[kWhole]);"
# Where a bar is on the screen: the middle of a call of this function, of this depth or any.
BAR = """
  const {bars, shift} = barsOf(data.threads[0]), canvas = lanes[0].calls;
  const bar = bars.filter(b => isCall(b) && nameOf(b[kName]).includes(arguments[0]) && b[kWhole]).sort((a, b) => b[kWidth] - a[kWidth])[0];
  if (!bar) return null;
  const [low, high] = barEnds(bar, shift);
  timeRange.show(low - (high - low), high + (high - low));
  drawTime();
  canvas.scrollIntoView({block: 'center'});
  const now = canvas.getBoundingClientRect();
  return {x: now.left + timeRange.x((low + high) / 2, canvas.clientWidth), y: now.top + (bar[kDepth] + 0.5) * kBar, total: bar[kTotal], self: bar[kSelf], record: bar[kRecord]};"""

VIEWER = """<!doctype html><title>viewer</title><script>
window.addEventListener('message', event => {
  if (event.data === 'PING') event.source.postMessage('PONG', event.origin);
  else if (event.data.perfetto) window.got = {title: event.data.perfetto.title, bytes: [...new Uint8Array(event.data.perfetto.buffer)], origin: event.origin};
});
</script>"""


class CallsTest(PageTest):
    def options(self):
        ui = os.path.join(self.folder, "ui")
        os.mkdir(ui)
        with open(os.path.join(ui, "index.html"), "w") as file:
            file.write(VIEWER)
        return ["--perfetto-ui", ui]

    def time_line(self, browser, session):
        self.open_session(browser, session)
        browser.click("[data-view=time]")
        browser.wait_for("return barsOf(data.threads[0]).bars.length")

    def click_on(self, browser, function):
        found = lambda: eventually(lambda: browser.run(BAR, function), "a call of " + function)
        found()
        browser.wait_for("return barsOf(data.threads[0]).all")  # of what is shown now
        place = found()  # which may lie elsewhere on the page
        browser.point_at(place["x"], place["y"], clicks=1)
        browser.wait_for("return selectedBar !== null")
        return place

    def zoom_at(self, browser, part):
        """From the whole session to some microseconds at that part of its width."""
        browser.run("timeRange.show(0, 1); drawTime()")
        area = browser.run("const a = lanes[0].calls.getBoundingClientRect(); return [a.left, a.top, a.width]")
        browser.point_at(area[0] + area[2] * part, area[1] + 5)
        for _ in range(60):
            browser.press("w")
            if browser.run("return timeRange.span * span") < 20_000:
                break
        browser.wait_for("return closeUp !== null && barsOf(data.threads[0]).all")

    def test_a_call_says_what_it_was(self):
        session = self.collector.seal(self.collector.trace("moods", "1500"))
        browser = self.signed_in()
        self.time_line(browser, session)
        self.show(browser, "calls_whole")
        place = self.click_on(browser, "slow")
        said = browser.run(DETAIL)
        self.assertIn("slow() (moods)", said)
        self.assertIn(f"took {time_text(place['total'])}, itself {time_text(place['self'])}", said)
        self.assertRegex(said, r"called by main")
        self.show(browser, "calls_selected")
        # As the events say it, but for stalls, of which there are none.
        self.assertEqual(session["stalled_ns"], 0)
        self.assertEqual(max(self.durations(session, browser.run(CHOSEN))), place["total"])
        browser.press("escape")
        self.assertNotIn("slow()", browser.run(DETAIL))
        browser.press("/", *"SLOW", "enter", "escape")  # the next one found
        self.assertIn("slow()", browser.run(DETAIL))
        self.assertEqual(browser.errors(), [])

    def test_a_function_and_its_slowest_calls(self):
        session = self.collector.seal(self.collector.trace("moods", "1500"))
        browser = self.signed_in()
        self.open_session(browser, session)
        slow = browser.run("return names.find(n => n.includes('slow'))")
        x, y, _ = browser.run(BOX, slow)
        browser.point_at(x, y, clicks=1)
        self.assertEqual(browser.run(CHOSEN), slow)
        browser.wait_for("return chosenCalls !== null")
        self.show(browser, "panel")
        took = sorted(self.durations(session, slow), reverse=True)
        self.assertEqual(browser.run("return chosenCalls.calls"), len(took))
        self.assertEqual(browser.run("return chosenCalls.slowest.map(f => f.bar[kTotal])"), took[:20])
        self.assertEqual(browser.run("return [...document.querySelectorAll('#slowest button')].map(b => b.textContent)"), [time_text(ns) for ns in took[:20]])
        self.assertIn("main", browser.run("return document.getElementById('callers').textContent"))
        # A percentile and its example are as near as a bucket is wide, of 16 to a power of two.
        for per_mille in (500, 990):
            exact = sorted(took)[-(-len(took) * per_mille // 1000) - 1]
            middle, example = browser.run("const d = durationOf(arguments[0]); return [middleOf(d), d[3].bar[kTotal]]", per_mille)
            self.assertAlmostEqual(middle / exact, 1, delta=1 / 16)
            self.assertAlmostEqual(example / exact, 1, delta=1 / 16)
        # One click, and it is that very call.
        browser.click("#slowest tr:nth-child(3) button")
        self.assertEqual(browser.run("return current()"), "time")
        browser.wait_for("return barsOf(data.threads[0]).all")
        self.assertIn(f"took {time_text(took[2])}, ", browser.run(DETAIL))
        self.assertEqual(browser.run("return barsOf(data.threads[0]).bars.filter(b => sameBar(selectedBar, b, barsOf(data.threads[0]).shift)).length"), 1)
        self.show(browser, "panel_call")
        browser.run("history.back()")
        browser.wait_for("return current() === 'flame'")
        self.assertEqual(browser.run(CHOSEN), slow)
        browser.press("escape")
        self.assertEqual(browser.run(CHOSEN), "")
        self.assertEqual(browser.errors(), [])

    def test_open_serves_every_call_until_ctrl_c(self):
        session = self.collector.seal(self.collector.trace("moods", "300"))
        opened = subprocess.Popen([COLLECTCTL, "open", "--no-browser", self.collector.path_of(session)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(opened.stdout.close)
        self.addCleanup(opened.wait)
        self.addCleanup(opened.kill)
        browser = self.browser()
        browser.open(opened.stdout.readline().strip())
        browser.wait_for("return document.getElementById('panel') !== null && data.functions.length")
        self.assertNotIn("token", browser.address())
        slow = browser.run("return names.find(n => n.includes('slow'))")
        browser.run("choose(arguments[0], true)", slow)
        browser.wait_for("return chosenCalls !== null")
        self.assertEqual(browser.run("return chosenCalls.slowest[0].bar[kTotal]"), max(self.durations(session, slow)))
        opened.send_signal(signal.SIGINT)
        self.assertEqual(opened.wait(PATIENCE), 0)
        browser.wait_for("return document.getElementById('asked').textContent.includes('has ended')")

    def durations(self, session, name):
        calls, begun = [], {}
        for event in self.dumped(session):
            if event["name"] != name:
                continue
            if event["kind"] == "call":
                begun[event["thread"]] = event["ts_ns"]
            else:
                calls.append(event["ts_ns"] - begun.pop(event["thread"]))
        return calls

    def dumped(self, session):
        lines = subprocess.run([COLLECTCTL, "dump", "--json", self.collector.path_of(session)], capture_output=True, text=True, check=True).stdout
        events = []
        for line in lines.splitlines():
            event = json.loads(line)
            if event.get("kind") in ("call", "return", "exception"):
                events.append(event)
        return events

    def test_zoom_from_millions_of_events_to_one_call(self):
        session = self.collector.seal(self.collector.trace("steady", "fill", "1000000"))
        self.assertGreater(session["events"], 1 << 20)
        lod = os.path.join(self.collector.path_of(session), "thread_0", "index.lod")
        eventually(lambda: os.path.exists(lod), "the collector makes index.lod")
        browser = self.signed_in()
        self.time_line(browser, session)
        whole = browser.run(DRAWN)
        self.assertFalse(whole["all"], whole)
        report = self.report(session)
        self.assertEqual(browser.run(SUMS), {n: [f["calls"], f["self_ns"]] for n, f in report.items() if f["calls"]})
        self.show(browser, "calls_from_afar")
        # Where a busy machine did not let the program run there is nothing to see.
        for part in range(20, 60, 2):
            self.zoom_at(browser, part / 100)
            if browser.run(HAS_CALL, "step"):
                break
        drawn = browser.run(DRAWN)
        self.assertGreater(drawn["calls"], 0, drawn)
        self.assertEqual(browser.run("return document.getElementById('asked').textContent"), "")
        self.show(browser, "calls_close_up")
        self.click_on(browser, "step")
        self.assertRegex(browser.run(DETAIL), r"took [\d.]+ (ns|µs|ms)")
        self.assertEqual(browser.errors(), [])

    def test_registers_and_stack_of_a_call(self):
        program = self.collector.trace("steady", "pace", "600000")
        self.collector.wait_for(program.pid, lambda s: s["events"] > 100)
        self.collector.ctl("detail", "start", "--json")
        self.collector.wait_for(program.pid, lambda s: s["detail_records"] > 100)
        self.collector.ctl("detail", "stop", "--json")
        os.kill(program.pid, signal.SIGUSR2)  # it ends by itself
        session = self.collector.seal(program)
        browser = self.signed_in()
        self.time_line(browser, session)
        browser.run("const {bars, shift} = barsOf(data.threads[0]); const bar = bars.find(b => isCall(b) && b[kRecord] >= 0); selectBar({thread: data.threads[0], bar, shift})")
        said = browser.wait_for("return document.querySelector('#records .words')?.innerText")
        self.assertRegex(said, r"sp\s+0x[0-9a-f]+")
        # The caller is where it returns to: in the link register, or on top of the stack.
        caller = browser.run("return shorten(nameOf(callerOf(selectedBar)[kName]))")
        self.assertIn(caller.split("(")[0], browser.run("return document.getElementById('records').innerText"))
        self.show(browser, "calls_registers")
        self.assertEqual(browser.errors(), [])

    def test_totals_of_a_part_and_what_changed(self):
        session = self.collector.seal(self.collector.trace("moods", "1500"))
        browser = self.signed_in()
        self.time_line(browser, session)
        area = browser.run(AXIS)
        browser.drag(area[0] + area[2] * 0.2, area[1], area[0] + area[2] * 0.4)
        browser.press("m")  # the one to compare with
        browser.drag(area[0] + area[2] * 0.5, area[1], area[0] + area[2] * 0.8)
        first, last = browser.run("return selectedTime.map(p => String(absolute(p * span)))")
        browser.click("#totals")
        browser.wait_for("return part !== null && current() === 'flame'")
        self.assertIn("From ", browser.run("return document.getElementById('part').innerText"))
        report = {f["name"]: f for f in self.collector.ctl(
            "report", "--json", "--from", first, "--until", last, self.collector.path_of(session))["functions"]}
        self.assertEqual(browser.run(SUMS), {n: [f["calls"], f["self_ns"]] for n, f in report.items() if f["calls"]})
        browser.click("[data-view=functions]")
        rows = browser.run("return [...document.querySelectorAll('#rows tr')].map(r => [r.firstChild.title, r.cells[3].textContent])")
        self.assertEqual(dict(map(tuple, rows)), {n: in_ms(f["self_ns"]) for n, f in report.items()})

        browser.click("#compare")
        browser.wait_for("return base !== null && current() === 'flame'")
        self.assertIn("Compared with the time from", browser.run("return document.getElementById('base').innerText"))
        self.assertIn("of the time there, ", browser.run(DETAIL))
        self.show(browser, "calls_compared")
        sums = browser.run(SUMS)
        browser.refresh()  # the address keeps both
        browser.wait_for("return typeof base !== 'undefined' && base !== null && part !== null")
        self.assertEqual(browser.run(SUMS), sums)
        browser.click("#no-base")
        browser.click("#whole")
        self.assertEqual(browser.run("return [base, part]"), [None, None])
        self.assertEqual(browser.run(SUMS), {n: [f["calls"], f["self_ns"]] for n, f in self.report(session).items() if f["calls"]})
        self.assertEqual(browser.errors(), [])

    def test_another_session_is_compared_with(self):
        before = self.collector.seal(self.collector.trace("moods", "300"))
        session = self.collector.seal(self.collector.trace("moods", "1500"))
        browser = self.signed_in()
        self.open_session(browser, session)
        browser.click("#compare")
        browser.answer_prompt(before["name"].removeprefix("sessions/"))
        browser.wait_for("return base !== null")
        shares = browser.run("return [shareIn(base.tree, 0), base.tree.name.length]")
        self.assertEqual(shares[0], 1)
        self.assertGreater(shares[1], 2)
        browser.run("return compareLink({session: '../../api/state'})")
        browser.wait_for("return base === null")
        self.assertIn("the name of a session looks like", browser.run("return document.getElementById('asked').textContent"))

    def test_perfetto_is_given_the_bytes(self):
        session = self.collector.seal(self.collector.trace("moods", "300"))
        browser = self.signed_in()
        self.time_line(browser, session)
        address = browser.wait_for("return perfettoUi.startsWith('http:') && perfettoUi")
        self.assertNotEqual(address, f"http://127.0.0.1:{self.collector.port}")
        page = browser.windows()[0]
        browser.click("#perfetto")
        viewer = eventually(lambda: [w for w in browser.windows() if w != page], "the viewer's window")[0]
        browser.switch_to(viewer)
        got = browser.wait_for("return window.got")
        self.assertIn("moods (", got["title"])
        self.assertEqual(got["origin"], f"http://127.0.0.1:{self.collector.port}")
        path = os.path.join(self.folder, "posted.pftrace")
        with open(path, "wb") as file:
            file.write(bytes(got["bytes"]))
        expected = os.path.join(self.folder, "expected.pftrace")
        subprocess.run([COLLECTCTL, "convert", self.collector.path_of(session), "--to", "perfetto", "-o", expected],
                       check=True, stdout=subprocess.DEVNULL)
        with open(expected, "rb") as file:
            self.assertEqual(len(got["bytes"]), len(file.read()))
        browser.switch_to(page)
        self.assertEqual(browser.run("return document.getElementById('asked').textContent"), "")


if __name__ == "__main__":
    leave_without_browser()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
