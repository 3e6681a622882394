#!/usr/bin/env python3
"""browser_views_test.py BIN LIB ARTIFACTS: what the views of a session's page show of the same calls, beside sums
made here from `collectctl dump`: the flame graph inverted, around one function, and with recursion folded; the
time line moved by wheel, mouse and keys, its lanes in order, filtered, folded and pinned, and rows of deep calls.
As browser_test.py, from which it takes the rest."""

import collections
import json
import os
import shutil
import subprocess
import sys
import unittest

from browser_test import BOX, COLLECTCTL, PageTest, leave_without_browser
from collector import PATIENCE

SHOW = "document.getElementById(arguments[0]).value = arguments[1]; document.getElementById(arguments[0]).dispatchEvent(new Event('change'))"
# Boxes of the tree that is shown: the path of names from its root, total and self time.
TREE = """
  const t = tree(), paths = [[]], found = [];
  for (let i = 1; i < t.name.length; ++i) paths.push([...paths[t.parent[i]], (t.up[i] ? '^' : '') + nameOf(t.name[i])]);
  return paths.map((path, i) => [path, t.total[i], t.self[i], t.calls[i]]);"""
TIP = "const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.innerText"
LANES = "return [...document.querySelectorAll('.thread')].filter(t => t.offsetHeight > 0).map(t => t.querySelector('.label').title)"
CALLS = """
  const canvas = lanes.find(l => l.shownRows > 0 && l.element.offsetHeight > 0).calls, a = canvas.getBoundingClientRect();
  return [a.left, a.top, a.width, a.height];"""
SEEN = "return [timeRange.low, timeRange.high]"


class ViewsTest(PageTest):
    def paths(self, session):
        """Of each call the names from its thread's first one, and its total and self time, by what was dumped."""
        lines = subprocess.run([COLLECTCTL, "dump", "--json", self.collector.path_of(session)],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        open_calls, calls = collections.defaultdict(list), []
        for event in map(json.loads, lines):
            stack = open_calls[event.get("thread")]
            if event.get("kind") == "call":
                stack.append([event["name"], event["ts_ns"], 0])
            elif event.get("kind") in ("return", "exception"):
                path = tuple(call[0] for call in stack)
                _, begin, below = stack.pop()
                total = event["ts_ns"] - begin
                if stack:
                    stack[-1][2] += total
                calls.append((path, total, total - below))
        return calls

    def test_flame_graph_inverted_and_around_a_function(self):
        session = self.collector.seal(self.collector.trace("moods", "300"))
        self.assertEqual(session["stalled_ns"], 0)
        calls = self.paths(session)
        browser = self.signed_in()
        self.open_session(browser, session)

        browser.run(SHOW, "shape", "inverted")
        expected = collections.Counter()
        for path, _, own in calls:
            for depth in range(1, len(path) + 1):
                expected[path[::-1][:depth]] += own
        least = 1e-5 * sum(own for _, _, own in calls)  # callers of less are one box
        shown = {tuple(path): total for path, total, _, _ in browser.run(TREE) if path and "other paths" not in path}
        self.assertEqual({p: ns for p, ns in expected.items() if expected[p[:1]] and len(p) == 1},
                         {p: ns for p, ns in shown.items() if len(p) == 1})
        for path, ns in shown.items():
            self.assertAlmostEqual(ns, expected[path], delta=least * len(calls))
        self.show(browser, "flame_inverted")

        slow = next(path[-1] for path, _, _ in calls if "slow" in path[-1])
        browser.run("choose(arguments[0], true)", slow)
        browser.run(SHOW, "shape", "around")
        around = {tuple(path): (total, calls) for path, total, _, calls in browser.run(TREE)}
        outer = [(path, total) for path, total, _ in calls if path[-1] == slow]
        self.assertEqual(around[()], (sum(ns for _, ns in outer), len(outer)))
        callers = collections.Counter()
        for path, ns in outer:
            for depth in range(1, len(path)):
                callers[("^" + path[-2],) + tuple("^" + n for n in path[-3::-1])[:depth - 1]] += ns
        callees = collections.Counter()
        for path, ns, _ in calls:
            if slow in path and path[-1] != slow:
                callees[path[path.index(slow) + 1:]] += ns
        self.assertEqual({p: total for p, (total, _) in around.items() if p}, {**callers, **callees})
        self.show(browser, "flame_around")
        # A double click on the caller: it is in the middle then, and the address says so.
        x, y, _ = browser.run(BOX, "main")
        browser.point_at(x, y, clicks=2)
        self.assertEqual(browser.run("return nameOf(centre)"), "main")
        browser.refresh()
        browser.wait_for("return document.getElementById('detail')?.textContent")
        self.assertEqual(browser.run("return [shape, nameOf(centre)]"), ["around", "main"])
        self.assertEqual(browser.errors(), [])

    def test_recursion_is_folded_and_deep_rows_scroll(self):
        session = self.collector.seal(self.collector.trace("depths", "20", "300"))
        browser = self.signed_in()
        self.open_session(browser, session)
        plain = browser.run(TREE)
        self.assertEqual(max(len(path) for path, *_ in plain), 301)
        browser.click("#fold")
        folded = {tuple(path): (total, own, calls) for path, total, own, calls in browser.run(TREE)}
        chain = [row for row in plain if row[0] and row[0][-1] == "chain"]
        self.assertEqual(folded[("main", "chain")], (next(r[1] for r in chain if len(r[0]) == 2), sum(r[2] for r in chain), 20 * 300))
        self.assertEqual(len(folded), 3)
        browser.click("#fold")
        self.assertEqual(browser.run(TREE), plain)

        browser.click("[data-view=time]")
        self.assertEqual(browser.run("return lanes[0].more.innerText"), f"{301 - browser.run('return lanes[0].shownRows')} more rows")
        browser.click(".calls span button")
        left, top, width, height = browser.run(CALLS)
        self.assertEqual(height, browser.run("return rowsOpened() * kBar"))
        browser.drag(left + width / 2, top + height - 20, left + width / 2, top + 20)
        self.assertEqual(browser.run("return lanes[0].rows.scrollTop"), height - 40)
        browser.point_at(left + width / 2, top + 30)
        self.assertTrue(browser.run(TIP).startswith("chain\n"), browser.run(TIP))
        self.show(browser, "time_deep")
        self.assertEqual(browser.errors(), [])

    def test_time_line_is_moved_by_wheel_mouse_and_strip(self):
        session = self.collector.seal(self.collector.trace("moods", "1500"))
        browser = self.signed_in()
        self.open_session(browser, session)
        browser.click("[data-view=time]")
        left, top, width, _ = browser.run(CALLS)
        at = browser.run("return timeRange.position(arguments[0], arguments[1])", int(left + width / 3) - left, width)
        for _ in range(4):
            browser.wheel(left + width / 3, top + 5, -200)
        low, high = browser.wait_for("return timeRange.span < 0.1 && [timeRange.low, timeRange.high]")
        self.assertAlmostEqual((at - low) / (high - low), 1 / 3, places=2)  # the pointer is where it was
        browser.wait_for("return barsOf(data.threads[0]).all && closeUp !== null")
        self.assertEqual(browser.run("return activityOf(data.threads[0]).parts.length"), 800)
        # What the close-up says of its time is what the events are.
        first, last = browser.run("return [closeUp.shift, closeUp.shift + 800 * closeUp.part].map(ns => String(absolute(ns)))")
        stamps = [json.loads(line)["ts_ns"] for line in subprocess.run(
            [COLLECTCTL, "dump", "--json", self.collector.path_of(session)], capture_output=True, text=True).stdout.splitlines() if '"ts_ns"' in line]
        parts = browser.run("return activityOf(data.threads[0]).parts")
        within = [ns for ns in stamps if int(first) <= ns <= int(last)]
        self.assertAlmostEqual(sum(parts), len(within), delta=2)

        browser.drag(left + width / 2, top + 5, left + width / 2 - 100)
        moved = browser.run(SEEN)
        self.assertAlmostEqual((moved[0] - low) / (high - low), 100 / width, places=2)
        strip = browser.run("const a = document.getElementById('overview').getBoundingClientRect(); return [a.left, a.top + a.height / 2, a.width]")
        middle = strip[0] + strip[2] * (moved[0] + moved[1]) / 2
        browser.drag(middle, strip[1], middle + strip[2] * 0.1)  # the window
        self.assertAlmostEqual(browser.run(SEEN)[0] - moved[0], 0.1, places=2)
        end = strip[0] + strip[2] * browser.run(SEEN)[1]
        browser.drag(end, strip[1], end + strip[2] * 0.2)  # its edge
        self.assertAlmostEqual(browser.run(SEEN)[1] - moved[1], 0.3, places=2)
        browser.drag(strip[0] + strip[2] * 0.05, strip[1], strip[0] + strip[2] * 0.15)  # a new one
        for seen, expected in zip(browser.run(SEEN), (0.05, 0.15)):
            self.assertAlmostEqual(seen, expected, places=2)
        browser.point_at(strip[0] + 20, strip[1], clicks=2)
        self.assertEqual(browser.run(SEEN), [0, 1])

        # The pointer on a call says what it is; keys go from call to call; a double click zooms to it.
        browser.point_at(left + width / 2, top + browser.run("return kBar") * 0.5)
        self.assertTrue(browser.run(TIP).startswith("main\n"), browser.run(TIP))
        browser.point_at(left + width / 2, top + browser.run("return kBar") * 0.5, clicks=1)
        browser.press("down")
        self.assertEqual(browser.run("return selectedBar.bar[kDepth]"), 1)
        one = browser.run("return selectedBar.bar[kFirst]")
        browser.press("right")
        self.assertGreater(browser.run("return selectedBar.bar[kFirst]"), one)
        browser.press("up")
        self.assertIn("main", browser.run("return chosen"))
        self.assertEqual(browser.errors(), [])

    def test_chromiums_own_trace_has_all_its_calls(self):
        """Recorded by Chromium itself, as JSON and as a Perfetto trace, which have the same kinds of events."""
        if shutil.which("chromium") is None:
            self.skipTest("no chromium")
        for kind in ("json", "proto"):
            path = os.path.join(self.folder, "trace")  # without an ending that says what it is
            subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--trace-startup", "--trace-startup-duration=1",
                            f"--trace-startup-format={kind}", f"--trace-startup-file={path}", f"--user-data-dir={self.folder}/{kind}",
                            "--virtual-time-budget=1500", "--dump-dom", "data:text/html,hello"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=2 * PATIENCE, check=False)
            capture = os.path.join(self.folder, "of_" + kind)
            done = subprocess.run([COLLECTCTL, "convert", path, "--to", "atf", "--json", "-o", capture], capture_output=True, text=True)
            self.assertLessEqual(done.returncode, 1, done.stderr)
            functions = json.loads(subprocess.run([COLLECTCTL, "report", "--json", capture], capture_output=True, text=True, check=True).stdout)["functions"]
            calls = {f["name"]: f["calls"] for f in functions if f["calls"]}
            self.assertIn("ThreadControllerImpl::RunTask", calls)
            if kind == "json":
                with open(path, encoding="utf-8") as file:
                    events = json.load(file)["traceEvents"]
                self.assertEqual(calls, dict(collections.Counter(e["name"] for e in events if e["ph"] in "BX")))

    def test_lanes_in_order_filtered_folded_and_pinned(self):
        session = self.collector.seal(self.collector.trace("threads", "short"))
        browser = self.signed_in()
        self.open_session(browser, session)
        browser.click("[data-view=time]")
        self.assertEqual(len(browser.run(LANES)), 301)
        # Also those that are out of sight, and not drawn yet, are as high as they will be.
        self.assertEqual(browser.run("return Math.max(...lanes.map(l => l.activity.offsetHeight))"), browser.run("return kLane"))
        browser.run(SHOW, "order", "name")
        names = browser.run(LANES)
        self.assertEqual(names, sorted(names, key=lambda n: (n.split(" (")[0], int(n.split("(")[1].split(")")[0]))))
        browser.run(SHOW, "order", "busy")
        by_time = browser.run("return [...document.querySelectorAll('.thread')].map(t => busyOf(lanes.find(l => l.element === t).thread))")
        self.assertEqual(by_time, sorted(by_time, reverse=True))
        wanted = names[7]
        browser.run("const field = document.getElementById('threads-wanted'); field.value = arguments[0]; field.dispatchEvent(new Event('input'))", wanted)
        self.assertEqual(browser.run(LANES), [wanted])
        self.assertIn("300 threads not shown", browser.visible_text())
        browser.point_at(*browser.run("const a = document.querySelector('#lanes .thread:not([hidden]) .label').getBoundingClientRect(); return [a.left + 40, a.top + 8]"))
        browser.click("#lanes .thread:not([hidden]) .label button:last-child")
        browser.run("const field = document.getElementById('threads-wanted'); field.value = ''; field.dispatchEvent(new Event('input'))")
        self.assertEqual(browser.run(LANES)[0], wanted)
        browser.click("#pinned .label button:first-child")
        self.assertEqual(browser.run("return document.querySelector('#pinned .calls').offsetHeight"), 0)
        browser.refresh()
        browser.wait_for("return document.getElementById('detail')?.textContent")
        self.assertEqual(browser.run("return [...document.querySelectorAll('#pinned .label')].map(l => l.title)"), [wanted])
        self.show(browser, "time_lanes")
        self.assertEqual(browser.errors(), [])


if __name__ == "__main__":
    leave_without_browser()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
