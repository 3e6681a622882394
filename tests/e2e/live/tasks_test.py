#!/usr/bin/env python3
"""tasks_test.py BIN LIB ARTIFACTS: twelve questions that people have of a trace, each answered through the real page in
a real browser with at most four clicks and drags, and compared with what the events say. Every answer is a screenshot
in ARTIFACTS, and the clicks of each are printed. As browser_test.py, from which it takes the rest."""

import collections
import json
import subprocess
import sys
import unittest

from browser_test import AXIS, BOX, COLLECTCTL, DETAIL, PageTest, in_ms, leave_without_browser, time_text

MOST_CLICKS = 4
PANEL = "return document.getElementById('panel').innerText"


class TasksTest(PageTest):
    def setUp(self):
        super().setUp()
        self.taken = []

    def ask(self, question, browser):
        """Begins with the page as it was opened."""
        self.question, self.clicks = question, 0
        browser.press("escape")
        browser.run("history.replaceState(null, '', '#'); measure = 'wall'; if (part !== null) showWhole(); show(restore())")
        return self

    def click(self, browser, css):
        self.clicks += 1
        browser.click(css)

    def click_at(self, browser, x, y):
        self.clicks += 1
        browser.point_at(x, y, clicks=1)

    def drag(self, browser, first, last):
        self.clicks += 1
        left, y, width = browser.run(AXIS)
        browser.drag(left + width * first, y, left + width * last)

    def answered(self, browser):
        self.taken.append((self.clicks, self.question))
        self.show(browser, f"task_{len(self.taken):02}")
        self.assertLessEqual(self.clicks, MOST_CLICKS, self.question)

    def events(self, session):
        """Calls of the session: (name, thread, begin, total, caller)."""
        lines = subprocess.run([COLLECTCTL, "dump", "--json", self.collector.path_of(session)],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        stacks, calls = collections.defaultdict(list), []
        for event in map(json.loads, lines):
            stack = stacks[event.get("thread")]
            if event.get("kind") == "call":
                stack.append((event["name"], event["ts_ns"]))
            elif event.get("kind") in ("return", "exception"):
                name, begin = stack.pop()
                calls.append((name, event["thread"], begin, event["ts_ns"] - begin, stack[-1][0] if stack else None))
        return calls

    def test_twelve_questions(self):
        program = self.collector.trace("moods", "900")
        session = self.collector.seal(program)
        calls, report = self.events(session), self.report(session)
        slow = next(name for name in report if "slow" in name)
        of_slow = sorted((c for c in calls if c[0] == slow), key=lambda c: -c[3])
        browser = self.signed_in()
        self.open_session(browser, session)
        slow_box = lambda: browser.run(BOX, slow)[:2]

        self.ask("Which function takes most of the time itself?", browser)
        self.click(browser, "[data-view=functions]")
        self.click(browser, "#head th:nth-child(4)")
        most = max(report.values(), key=lambda f: f["self_ns"])
        self.assertEqual(browser.run("return document.querySelector('#rows tr').firstChild.title"), most["name"])
        self.answered(browser)

        self.ask("Which call of this function was slowest, and what did the threads do then?", browser)
        self.click_at(browser, *slow_box())
        browser.wait_for("return chosenCalls !== null")
        self.click(browser, "#slowest tr:first-child button")
        self.assertIn(f"took {time_text(of_slow[0][3])}, ", browser.run(DETAIL))
        self.assertEqual(browser.run("return [current(), lanes.length]"), ["time", session["threads"]])
        self.answered(browser)

        self.ask("Which call took about as long as 99 of 100?", browser)
        self.click_at(browser, *slow_box())
        browser.wait_for("return chosenCalls !== null")
        self.click(browser, "#percentiles button:nth-child(3)")
        p99 = of_slow[::-1][-(-len(of_slow) * 99 // 100) - 1][3]
        self.assertAlmostEqual(browser.run("return selectedBar.bar[kTotal]") / p99, 1, delta=1 / 16)
        self.answered(browser)

        self.ask("Who calls it, how often, and for how long?", browser)
        self.click_at(browser, *slow_box())
        said = browser.run("return document.getElementById('callers').innerText")
        self.assertIn("main", said)
        self.assertIn(f"{len(of_slow):,} call", said)
        self.assertIn(time_text(sum(c[3] for c in of_slow)), said)
        self.answered(browser)

        self.ask("What does main call, and what takes longest of it?", browser)
        self.click_at(browser, *browser.run(BOX, "main")[:2])
        by_callee = collections.Counter()
        for name, _, _, total, caller in calls:
            if caller == "main":
                by_callee[name] += total
        first = browser.run("return document.querySelector('#callees button').title")
        self.assertEqual(first, by_callee.most_common(1)[0][0])
        self.answered(browser)

        self.ask("How often does it take how long?", browser)
        self.click_at(browser, *slow_box())
        browser.wait_for("return chosenCalls !== null")
        self.assertEqual(browser.run("return chosenCalls.durations.reduce((sum, d) => sum + d[2], 0)"), len(of_slow))
        self.answered(browser)

        self.ask("Where is it in the source?", browser)
        self.click_at(browser, *slow_box())
        self.assertRegex(browser.run(PANEL), r"moods\.cc:\d+")
        self.answered(browser)

        self.ask("What took the time in this part of the recording?", browser)
        self.click(browser, "[data-view=time]")
        self.drag(browser, 0.2, 0.5)
        first, last = browser.run("return selectedTime.map(p => String(absolute(p * span)))")
        self.click(browser, "#totals")
        browser.wait_for("return part !== null && current() === 'flame'")
        of_part = {f["name"]: f for f in self.collector.ctl(
            "report", "--json", "--from", first, "--until", last, self.collector.path_of(session))["functions"]}
        self.click(browser, "[data-view=functions]")
        shown = dict(browser.run("return [...document.querySelectorAll('#rows tr')].map(r => [r.firstChild.title, r.cells[3].textContent])"))
        self.assertEqual(shown, {n: in_ms(f["self_ns"]) for n, f in of_part.items()})
        self.answered(browser)

        self.ask("What changed between two parts of it?", browser)
        self.click(browser, "[data-view=time]")
        self.drag(browser, 0.1, 0.4)
        browser.press("m")
        self.click(browser, "#compare")
        browser.wait_for("return base !== null && current() === 'flame'")
        self.assertIn("of the time there, ", browser.run(DETAIL))
        self.answered(browser)
        browser.click("#no-base")

        self.ask("Which functions take the time, by whichever caller?", browser)
        browser.run("document.getElementById('shape').value = 'inverted'; document.getElementById('shape').dispatchEvent(new Event('change'))")
        self.clicks += 2  # the list, and its entry
        top = browser.run("const t = tree(); return nameOf(t.name[t.children[0][0]])")
        self.assertEqual(top, most["name"])
        self.answered(browser)

        self.ask("Is anything of it missing?", browser)
        text = browser.visible_text()
        self.assertNotIn("lost", text)
        self.assertEqual(session["lost_events"], 0)
        self.answered(browser)

        self.ask("What did this call do after it began?", browser)
        self.click(browser, "[data-view=time]")
        place = browser.run("""
          const {bars, shift} = barsOf(data.threads[0]), a = lanes[0].calls.getBoundingClientRect();
          const bar = bars.filter(b => b[kDepth] === 1).sort((a, b) => b[kWidth] - a[kWidth])[0], [low, high] = barEnds(bar, shift);
          return [a.left + timeRange.x((low + high) / 2, lanes[0].calls.clientWidth), a.top + 1.5 * kBar];""")
        self.clicks += 2
        browser.point_at(*place, clicks=2)  # and it fills the width
        self.assertGreater(browser.run("const [low, high] = barEnds(selectedBar.bar, selectedBar.shift); return (high - low) / timeRange.span"), 0.8)
        self.answered(browser)

        self.assertEqual(len(self.taken), 12)
        self.assertEqual(browser.errors(), [])
        for clicks, question in self.taken:
            print(f"  {clicks} clicks: {question}")


if __name__ == "__main__":
    leave_without_browser()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
