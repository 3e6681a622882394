#!/usr/bin/env python3
"""browser_test.py BIN LIB ARTIFACTS: the live page and the pages of sessions in a real browser: a program
is traced, shown, steered and stopped, its sums are those of `collectctl report`, and pages of other origins
get nothing. Screenshots go to ARTIFACTS. The browser is Chromium, or what COLLECT_BROWSER names. Skipped
(77) without it (Debian's packages chromium and chromium-driver, firefox-esr)."""

import decimal
import html
import http.server
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from collector import PATIENCE, Collector, clean_environment, eventually, text_of

BIN, LIB, ARTIFACTS = map(os.path.abspath, sys.argv[1:4])
BROWSER = importlib.import_module(os.environ.get("COLLECT_BROWSER", "chromium"))
COLLECTCTL = os.path.join(BIN, "collectctl")
LEAST_CONTRAST = 4.5  # WCAG 2, level AA


def leave_without_browser():
    missing = BROWSER.missing_programs()
    if missing:
        print("skipped: no " + " and no ".join(missing))
        sys.exit(77)


def in_ms(ns):
    """As the table of functions has times of all calls."""
    return f"{(decimal.Decimal(ns) / 10 ** 6).quantize(decimal.Decimal('0.001'), decimal.ROUND_HALF_UP):,}"


def time_text(ns):
    """As the page writes times: four digits, half a digit is one."""
    for unit, digits in (("s", 9), ("ms", 6), ("µs", 3)):
        if ns >= 10 ** digits:
            value = decimal.Decimal(ns / 10 ** digits)
            rounded = value.quantize(decimal.Decimal(1).scaleb(value.adjusted() - 3), decimal.ROUND_HALF_UP)
            return f"{rounded:f} {unit}"
    return f"{ns} ns"


ROW = """
  const row = [...document.querySelectorAll('#sessions tbody tr')].find(r => r.cells[0].innerText.includes('(' + arguments[0] + ')'));
  if (!row) return null;
  const heads = [...document.querySelectorAll('#sessions th')].map(h => h.textContent);
  const shown = Object.fromEntries([...row.cells].map((c, i) => [heads[i] || 'actions', c.innerText]));
  shown.buttons = [...row.querySelectorAll('button')].filter(b => !b.hidden).map(b => b.textContent);
  return shown;"""
PRESS = """
  document.querySelector('[data-press]')?.removeAttribute('data-press');
  const row = [...document.querySelectorAll('#sessions tbody tr')].find(r => r.cells[0].innerText.includes('(' + arguments[0] + ')'));
  [...row.querySelectorAll('button, a')].find(b => b.textContent === arguments[1]).setAttribute('data-press', '');"""
DETAIL = "return document.getElementById('detail').textContent"
# The middle of the first box of this function that is drawn.
BOX = """
  const area = document.getElementById('graph').getBoundingClientRect();
  const box = boxes.find(b => nameOf(tree().name[b[0]]) === arguments[0]);
  return box && [area.left + box[2] + box[3] / 2, area.top + (box[1] + 0.5) * kRow, box[3] / area.width];"""
# The function that the panel shows; "": it is not there.
CHOSEN = "return document.getElementById('panel').hidden ? '' : document.getElementById('chosen').title"
# The sums of every function over all nodes of the flame graph that is shown.
SUMS = """
  const t = tree(), sums = {};
  t.name.forEach((name, i) => {
    if (name < 0) return;
    const sum = sums[names[name]] ??= [0, 0];
    sum[0] += t.calls[i];
    sum[1] += t.self[i];
  });
  return sums;"""
# The scale of the time line: left, middle, width.
AXIS = "const a = document.getElementById('axis').getBoundingClientRect(); return [a.left, a.top + a.height / 2, a.width];"
# Of the pixels of the thread's lane, those that have this colour more than any other of the page.
COLOURED = """
  const colours = Object.fromEntries(['busy', 'stall', 'gap', 'panel'].map(n => [n, css('--' + n).match(/[0-9a-f]{2}/g).map(h => parseInt(h, 16))]));
  const lane = lanes[0].activity, pixels = lane.getContext('2d').getImageData(0, 0, lane.width, lane.height).data, counts = {};
  for (let i = 0; i < pixels.length; i += 4) {
    let nearest = '', least = Infinity;
    for (const [name, c] of Object.entries(colours)) {
      const away = Math.hypot(pixels[i] - c[0], pixels[i + 1] - c[1], pixels[i + 2] - c[2]);
      if (away < least) [nearest, least] = [name, away];
    }
    counts[nearest] = (counts[nearest] || 0) + 1;
  }
  return counts;"""
# The least contrast of a text with what is behind it.
CONTRAST = """
  const part = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  let least = [Infinity, ''];
  for (const element of document.querySelectorAll('body *')) {
    if (!element.offsetWidth || ![...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    let behind = element;
    while (behind && numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const a = light(numbers(getComputedStyle(element).color)), b = light(numbers(getComputedStyle(behind || document.body).backgroundColor));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least[0]) least = [contrast, element.outerHTML.slice(0, 200)];
  }
  return least;"""


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(ARTIFACTS, exist_ok=True)
        cls.scratch = tempfile.mkdtemp(prefix="browser_test_")
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.driver = BROWSER.Driver(cls.scratch)
        cls.addClassCleanup(cls.driver.close)

    def options(self):
        """Further ones of the collector."""
        return []

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.scratch)
        self.collector = Collector(BIN, LIB, self.folder, web=True, options=self.options())
        self.addCleanup(self.collector.close)

    def browser(self, **options):
        browser = BROWSER.Browser(self.driver, **options)
        self.addCleanup(browser.close)
        return browser

    def signed_in(self, **options):
        browser = self.browser(**options)
        browser.open(self.collector.address["web"])
        browser.wait_for("return document.getElementById('now').textContent.includes('record')")
        return browser

    def show(self, browser, what):
        browser.screenshot(os.path.join(ARTIFACTS, what + ".png"))

    def row(self, browser, pid, is_wanted=lambda row: True):
        return eventually(lambda: (lambda r: r if r and is_wanted(r) else None)(browser.run(ROW, pid)),
                          lambda: f"{browser.run(ROW, pid)} {browser.visible_text()}")

    def press(self, browser, pid, button):
        """A click with the mouse; buttons stay where they are while the page changes."""
        browser.run(PRESS, pid, button)
        browser.click("[data-press]")

    def open_session(self, browser, session):
        browser.open(f"http://127.0.0.1:{self.collector.port}/{session['name']}")
        browser.wait_for("return document.getElementById('detail')?.textContent")

    def report(self, session):
        return {f["name"]: f for f in self.collector.ctl("report", "--json", self.collector.path_of(session))["functions"]}


class LiveTest(PageTest):
    def test_a_recording_is_shown_steered_and_stopped(self):
        browser = self.signed_in()
        self.assertNotIn("token", browser.address())  # it does not stay in the history
        self.assertIn("collectctl run", browser.visible_text())
        program = self.collector.trace("steady", "pace", "600000")
        row = self.row(browser, program.pid, lambda r: r["State"].startswith("active") and "/s" in r["Events"])
        self.assertIn("steady", row["Program"])
        self.assertEqual(row["buttons"], ["Detail on", "Marker", "Filter", "Trigger", "Snapshot", "Stop"])
        events = int(re.match(r"[\d,]+", row["Events"])[0].replace(",", ""))
        self.row(browser, program.pid,
                 lambda r: int(re.match(r"[\d,]+", r["Events"])[0].replace(",", "")) > events + 1000)
        self.assertIn("1 session records", browser.visible_text())
        self.show(browser, "live_light")

        self.assertEqual(self.collector.session(program.pid)["detail_records"], 0)
        self.press(browser, program.pid, "Detail on")
        self.collector.wait_for(program.pid, lambda s: s["detail"] == "on" and s["detail_records"] > 100)
        self.row(browser, program.pid, lambda r: r["Detail"].startswith("on"))
        self.press(browser, program.pid, "Detail off")
        self.collector.wait_for(program.pid, lambda s: s["detail"] == "off")

        self.press(browser, program.pid, "Marker")
        browser.press(*"<b>the door</b> opens", "enter")
        browser.wait_for("return document.getElementById('message').innerText.includes('marker put: <b>the door</b> opens')")
        eventually(lambda: "<b>the door</b> opens" in str(self.collector.ctl("inspect", "--at-collector", "--json").get("markers")),
                   lambda: self.collector.ctl("inspect", "--at-collector", "--json").get("markers"))

        live = browser.windows()[0]
        self.press(browser, program.pid, "Open")
        page = eventually(lambda: [w for w in browser.windows() if w != live], "the session's page")[0]
        browser.switch_to(page)
        browser.wait_for("return document.getElementById('detail')?.textContent")
        self.assertGreater(browser.run(SUMS)["step"][0], 1000)
        calls = browser.run(SUMS)["step"][0]
        browser.click("#refresh")
        browser.wait_for("return typeof tree === 'function' && tree().calls.reduce((a, b) => a + b) > arguments[0]", calls + 10)
        browser.switch_to(live)

        self.press(browser, program.pid, "Trigger")
        browser.press(*"no_such_function", "enter")
        self.assertIn("no_such_function", browser.wait_for("return !document.getElementById('message').hidden && document.getElementById('message').className === '' && document.getElementById('message').innerText"))
        browser.press("escape")
        self.press(browser, program.pid, "Filter")
        browser.press(*"main", "enter")
        browser.wait_for("return document.getElementById('message').innerText.includes('1 function recorded from now on')")

        self.press(browser, program.pid, "Stop")
        browser.click("#pending button")  # undone
        self.press(browser, program.pid, "Stop")
        row = self.row(browser, program.pid, lambda r: r["State"].startswith("complete") and r["buttons"])
        self.assertEqual(row["buttons"], ["Start", "Delete"])
        self.assertEqual(self.collector.session(program.pid)["state"], "complete")
        self.press(browser, program.pid, "Start")
        self.row(browser, program.pid, lambda r: r["State"].startswith("active"))
        self.assertEqual([e for e in browser.errors() if "/api/trigger" not in e], [])  # refused, as it has to be

    def test_sessions_are_searched_sorted_compared_and_deleted(self):
        first = self.collector.seal(self.collector.trace("moods", "300"))
        second = self.collector.seal(self.collector.trace("depths", "40"))
        third = self.collector.seal(self.collector.trace("moods", "900"))
        browser = self.signed_in()
        pids = "return [...document.querySelectorAll('#sessions tbody tr')].map(r => Number(r.cells[0].innerText.match(/\\((\\d+)\\)/)[1]))"
        self.assertEqual(browser.wait_for(pids), [third["pid"], second["pid"], first["pid"]])  # the newest first
        browser.run("[...document.querySelectorAll('#sessions th')].find(h => h.textContent === 'Events').click()")
        by_events = sorted((first, second, third), key=lambda s: -s["events"])
        self.assertEqual(browser.run(pids), [s["pid"] for s in by_events])
        browser.click("#wanted")
        browser.press(*"MOODS")
        self.assertEqual(sorted(browser.run(pids)), sorted([first["pid"], third["pid"]]))
        for row in (1, 2):
            browser.click(f"#sessions tbody tr:nth-child({row}) input")
        live = browser.windows()[0]
        browser.click("#wanted")
        browser.press(*"X")
        browser.wait_for("return !document.getElementById('not-wanted').hidden")
        browser.press("\ue003")  # Backspace: they come back, still ticked
        self.assertEqual(browser.wait_for("return document.querySelectorAll('#sessions input:checked').length"), 2)
        browser.click("#compare")
        page = eventually(lambda: [w for w in browser.windows() if w != live], "the page that compares")[0]
        browser.switch_to(page)
        browser.wait_for("return typeof base !== 'undefined' && base !== null")
        self.assertIn(first["name"].removeprefix("sessions/"), browser.run("return document.getElementById('base').innerText"))
        browser.switch_to(live)
        self.press(browser, first["pid"], "Delete")
        eventually(lambda: first["pid"] not in browser.run(pids), "the row is gone")
        self.assertFalse(os.path.exists(self.collector.path_of(first)))
        self.assertIn("agents have gone", browser.visible_text())
        self.show(browser, "live_sessions")
        self.assertEqual(browser.errors(), [])

    def test_time_line_follows_a_recording(self):
        program = self.collector.trace("steady", "pace", "600000")
        session = self.collector.wait_for(program.pid, lambda s: s["events"] > 1000)
        browser = self.signed_in()
        self.open_session(browser, session)
        browser.click("[data-view=time]")
        span = browser.run("return span")
        browser.wait_for("return span > arguments[0] + 1e9 && timeRange.high === 1", span)
        self.assertGreater(browser.run("return barsOf(data.threads[0]).bars.length"), 1)
        self.assertEqual(browser.run("return getComputedStyle(document.getElementById('follow')).display === 'none' ? 'hidden' : document.getElementById('follow').getAttribute('aria-pressed')"), "true")
        self.show(browser, "time_follows")
        browser.press("a")  # moved: it stays
        self.assertEqual(browser.run("return document.getElementById('follow').getAttribute('aria-pressed')"), "false")
        browser.click("#follow")
        browser.wait_for("return timeRange.high === 1")
        os.kill(program.pid, signal.SIGUSR2)
        self.collector.seal(program)
        browser.wait_for("return document.getElementById('asked').textContent.includes('has ended')")
        self.assertEqual(browser.errors(), [])

    def test_a_run_with_its_own_page(self):
        run = subprocess.Popen([COLLECTCTL, "run", "--web", "-o", os.path.join(self.folder, "traces"), "--",
                                os.path.join(BIN, "e2e", "steady"), "pace", "600000"],
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                               env=clean_environment(COLLECT_AGENT_LIBRARY=os.path.join(LIB, "libcollect_agent.so")))
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        for line in run.stderr:
            if "live page: " in line:
                break
        browser = self.browser()
        browser.open(line.split("live page: ")[1].strip())
        pid = int(browser.wait_for("return document.querySelector('#sessions tbody tr')?.innerText.match(/steady \\((\\d+)\\)/)?.[1]"))
        self.row(browser, pid, lambda r: "/s" in r["Events"])
        os.kill(pid, signal.SIGUSR2)  # the program ends by itself, and the page with it
        run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0)
        browser.wait_for("return document.getElementById('now').textContent === 'no connection'")

    def test_texts_can_be_read_in_both_colour_schemes(self):
        program = self.collector.trace("moods", "1000")
        session = self.collector.seal(program)
        browser = self.signed_in()
        self.row(browser, program.pid)
        for scheme in ("light", "dark"):
            browser.color_scheme(scheme)
            self.assertGreater(browser.run(CONTRAST)[0], LEAST_CONTRAST, browser.run(CONTRAST))
            self.show(browser, "live_" + scheme)
        self.open_session(browser, session)
        for view in ("flame", "functions", "time"):
            browser.click(f"[data-view={view}]")
            backs = []
            for scheme in ("light", "dark"):
                browser.color_scheme(scheme)
                self.assertGreater(browser.run(CONTRAST)[0], LEAST_CONTRAST, browser.run(CONTRAST))
                self.assertLessEqual(browser.run("return document.documentElement.scrollWidth - innerWidth"), 0)
                self.show(browser, f"{view}_{scheme}")
                backs.append(browser.run("return [...lanes[0].activity.getContext('2d').getImageData(0, 0, 1, 1).data]"))
            if view == "time":
                self.assertNotEqual(*backs)  # what is drawn changes its colours too
        self.assertEqual(browser.errors(), [])


class SessionPageTest(PageTest):
    def test_sums_are_those_of_the_report(self):
        session = self.collector.seal(self.collector.trace("moods", "1500"))
        report = self.report(session)
        self.assertIn("slow", " ".join(report))
        browser = self.signed_in()
        self.open_session(browser, session)
        self.assertEqual(browser.run(SUMS), {n: [f["calls"], f["self_ns"]] for n, f in report.items() if f["calls"]})

        browser.click("[data-view=functions]")
        rows = browser.run("return [...document.querySelectorAll('#rows tr')].map(r => [...r.cells].map(c => c.textContent).concat(r.firstChild.title))")
        self.assertEqual({row[-1]: (row[1], row[3], row[5]) for row in rows},
                         {n: (in_ms(f["total_ns"]), in_ms(f["self_ns"]), f"{f['calls']:,}") for n, f in report.items()})
        totals = [report[row[-1]]["total_ns"] for row in rows]
        self.assertEqual(totals, sorted(totals, reverse=True))
        browser.click("#head th:first-child")
        shown = browser.run("return [...document.querySelectorAll('#rows tr')].map(r => r.firstChild.title)")
        self.assertEqual(shown, sorted(report))

        browser.click("[data-view=flame]")
        slow = next(name for name in report if "slow" in name)
        x, y, _ = browser.run(BOX, slow)
        browser.point_at(x, y)
        said = browser.run(DETAIL)
        self.assertIn(f"{slow}\n{time_text(report[slow]['total_ns'])}, ", said)
        self.assertIn(f"{report[slow]['calls']:,} calls", said)

    def test_zoom_search_selection_and_keys(self):
        session = self.collector.seal(self.collector.trace("moods", "1500"))
        browser = self.signed_in()
        self.open_session(browser, session)
        name = browser.run("return names.find(n => n.includes('slow'))")
        x, y, share = browser.run(BOX, name)
        self.assertLess(share, 0.95)
        browser.point_at(x, y, clicks=1)  # selects, and fills the width
        self.assertAlmostEqual(browser.run(BOX, name)[2], 1, places=2)
        self.assertIn(name, browser.run(DETAIL))
        self.assertIn(name, html.unescape(browser.run("return decodeURIComponent(location.hash)")))
        browser.press("escape")
        self.assertAlmostEqual(browser.run(BOX, name)[2], share, places=2)
        browser.point_at(x, y)
        browser.press("w", "w")  # at the pointer
        area = browser.run("const a = document.getElementById('graph').getBoundingClientRect(); return [a.left, a.width]")
        at = (int(x) - area[0]) / area[1]
        self.assertAlmostEqual(browser.run("return flameRange.span"), 0.64)
        self.assertAlmostEqual(browser.run("return flameRange.low + flameRange.span * arguments[0]", at), at)
        low = browser.run("return flameRange.low")
        browser.press("d")
        self.assertGreater(browser.run("return flameRange.low"), low)
        browser.press("a", "a", "a", "a", "a", "a", "a")
        self.assertEqual(browser.run("return flameRange.low"), 0)
        browser.press("s", "s", "s", "s")
        self.assertEqual(browser.run("return [flameRange.low, flameRange.high]"), [0, 1])

        browser.press("/", *"SLOW")
        self.assertEqual(browser.run("return document.activeElement.id + wanted"), "searchslow")
        self.assertRegex(browser.run("return document.getElementById('found').textContent"), "^1 found, .* %$")
        browser.press("enter", "escape", "f")  # selects it, leaves the search, zooms to it
        self.assertAlmostEqual(browser.run(BOX, name)[2], 1, places=2)
        self.assertEqual(browser.run(CHOSEN), name)
        self.show(browser, "flame_chosen")
        browser.press("up")
        self.assertTrue(browser.run(DETAIL).startswith("main\n"), browser.run(DETAIL))
        browser.refresh()  # the address keeps the view
        browser.wait_for("return document.getElementById('detail')?.textContent")
        self.assertEqual(browser.run("return [chosen, wanted, nameOf(tree().name[selected])]"), ["main", "slow", "main"])
        browser.click("[data-view=functions]")
        browser.run("history.back()")
        browser.wait_for("return current() === 'flame'")
        browser.run("history.back()")
        browser.wait_for("return document.getElementById('chosen').title.includes('slow')")
        browser.click("[data-view=functions]")
        self.assertEqual(browser.run("return [...document.querySelectorAll('#rows tr')].map(r => r.firstChild.title + r.className)"), [name + "selected"])
        browser.press("?")
        self.assertTrue(browser.run("return document.getElementById('help').open"))
        self.assertEqual(browser.errors(), [])

    def test_names_are_shortened_and_never_markup(self):
        session = self.collector.seal(self.collector.trace("moods", "300"))
        browser = self.signed_in()
        self.open_session(browser, session)
        for name, short in (
                ("main", "main"), ("quick()", "quick()"), ("(anonymous namespace)::slow()", "(anonymous namespace)::slow()"),
                ("std::vector<int, std::allocator<int> >::begin() const", "std::vector<…>::begin()"),
                ("void f<char const*>(char const*, (E)2)", "f<…>(…)"), ("bool operator< <A>(A const&)", "operator< <…>(…)"),
                ("A<1>::operator->() const", "A<…>::operator->()"), ("a::operator()<B>(B) const", "a::operator()<…>(…)"),
                ("decltype (g((A<int>)())) h<A<int> >(A<int>)", "h<…>(…)"), ("A::operator bool() const", "A::operator bool()"),
                ("f(int)::{lambda(int)#1}::operator()(int) const", "f(…)"), ("<b>&", "<b>&"), ("a < b (", "a < b (")):
            self.assertEqual(browser.run("return shorten(arguments[0])", name), short)
        browser.run("names[0] = '<img src=x onerror=alert(1)>'; shortNames.length = 0; for (const v of ['flame', 'functions', 'time']) show(v); show('functions')")
        self.assertEqual(browser.run("return document.querySelectorAll('img').length"), 0)

    # Stops the collector, so that the program's buffer is full, until it has lost or waited.
    def held_up(self, policy, *command):
        program = self.collector.trace(*command, COLLECT_FULL=policy, COLLECT_BUFFER_MB="1", COLLECT_DRAIN="thread")
        self.collector.wait_for(program.pid, lambda s: s["events"] > 10_000)
        self.collector.process.send_signal(signal.SIGSTOP)
        # What it does while no one takes its events: 0.2 s of CPU time, or it waits.
        def look():
            fields = text_of(f"/proc/{program.pid}/stat").rsplit(")", 1)[1].split()
            return fields[0], int(fields[11])
        before = look()[1]
        eventually(lambda: look()[0] == "S" if policy == "wait" else look()[1] > before + 20, "the buffer is full")
        self.collector.process.send_signal(signal.SIGCONT)
        return self.collector.seal(program)

    def test_a_gap_is_seen(self):
        session = self.held_up("drop", "steady", "burst", "3000", "3000")
        self.assertGreater(session["lost_events"], 0)
        browser = self.signed_in()
        self.assertIn(f"{session['lost_events']:,}", self.row(browser, session["pid"])["Lost"])
        self.open_session(browser, session)
        self.assertIn(f"{session['lost_events']:,} events were lost", browser.visible_text())
        browser.click("[data-view=time]")
        self.assertGreater(browser.run(COLOURED).get("gap", 0), 0)
        first, last = browser.run("return data.threads[0].gaps.reduce((a, b) => b[1] - b[0] > a[1] - a[0] ? b : a).map(shareOf)")
        area = browser.run("const a = lanes[0].activity.getBoundingClientRect(); return [a.left, a.top, a.width, a.height]")
        browser.point_at(area[0] + (first + last) / 2 * area[2], area[1] + area[3] / 2, clicks=1)
        self.assertIn("events lost, from ", browser.run(DETAIL))
        browser.press("f", "m")  # it fills most of the width then
        self.assertIn("\nmarked from ", browser.run(DETAIL))
        self.assertGreater(browser.run(COLOURED).get("gap", 0), 0)
        self.assertLess(browser.run("return timeRange.span"), 1)
        self.show(browser, "gap")
        browser.press("escape")
        axis = browser.run(AXIS)
        browser.drag(axis[0] + 100, axis[1], axis[0] + 300)
        self.assertAlmostEqual(browser.run("return (selectedTime[1] - selectedTime[0]) * lanes[0].activity.clientWidth"), 200, delta=2)
        self.assertEqual(browser.errors(), [])

    def test_a_stall_is_seen(self):
        session = self.held_up("wait", "steady", "fill", "3000000")
        self.assertEqual(session["lost_events"], 0)
        self.assertGreater(session["stalled_ns"], 0)
        browser = self.signed_in()
        self.assertRegex(self.row(browser, session["pid"])["Stalled"], r"^[\d.]+ m?s\s+[\d,]+ times$")
        self.open_session(browser, session)
        self.assertIn("stalled, left out of the times", browser.visible_text())
        browser.click("[data-view=time]")
        self.assertGreater(browser.run(COLOURED).get("stall", 0), 0)
        self.assertEqual(browser.run(COLOURED).get("gap", 0), 0)
        self.show(browser, "stall")


HOSTILE = """<!doctype html><title>hostile</title><body><script>
const target = "http://127.0.0.1:%PORT%", body = JSON.stringify({session: "%SESSION%"});
const json = {"Content-Type": "application/json"};
window.got = [];
const attempt = (what, promise) => promise.then(r => got.push([what, r.type + " " + r.status]), () => got.push([what, "refused"]));
Promise.all([
  attempt("reads the state", fetch(target + "/api/state", {credentials: "include"})),
  attempt("reads without CORS", fetch(target + "/api/state", {credentials: "include", mode: "no-cors"}).then(r => r.text()).then(text => { if (text) throw got.push(["text", text]); return {type: "empty", status: 0}; })),
  attempt("writes JSON", fetch(target + "/api/stop", {method: "POST", credentials: "include", headers: json, body})),
  attempt("writes text", fetch(target + "/api/stop", {method: "POST", credentials: "include", mode: "no-cors", body})),
  attempt("reads the page", fetch(target + "/sessions/%SESSION%", {credentials: "include"})),
  new Promise(done => { const e = new EventSource(target + "/api/events", {withCredentials: true});
    e.onerror = () => { e.close(); got.push(["listens", "refused"]); done(); };
    e.addEventListener("state", m => { e.close(); got.push(["listens", m.data]); done(); }); }),
  new Promise(done => { const s = document.createElement("script"); s.src = target + "/sessions/%SESSION%";
    s.onload = s.onerror = event => { got.push(["runs it as a script", event.type]); done(); }; document.body.append(s); }),
]).then(() => { window.done = true; });
</script>
<form id="form" method="post" enctype="text/plain" action="http://127.0.0.1:%PORT%/api/stop" target="answer">
  <input name='{"session": "%SESSION%", "x": "' value='"}'></form>
<iframe id="answer" name="answer"></iframe><iframe id="frame" src="http://127.0.0.1:%PORT%/"></iframe>"""


class HostileTest(PageTest):
    def serve(self, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def test_pages_of_other_origins_get_nothing(self):
        program = self.collector.trace("steady", "pace", "600000")
        session = self.collector.wait_for(program.pid, lambda s: s["events"] > 100)
        name = session["name"].removeprefix("sessions/")
        port = self.serve(HOSTILE.replace("%PORT%", str(self.collector.port)).replace("%SESSION%", name))
        browser = self.signed_in(local_names=["rebind.test"])  # it has the cookie
        for host in ("127.0.0.1", "localhost"):  # the same site, and another one
            browser.open(f"http://{host}:{port}/")
            browser.wait_for("return window.done")
            got = dict(browser.run("return got"))
            self.assertEqual(len(got), 7, got)
            self.assertNotIn("steady", str(got))
            # An answer that the page may not look into says nothing to it.
            for what, outcome in got.items():
                self.assertIn(outcome, ("refused", "opaque 0", "error", "empty 0"), what)
            self.assertEqual(browser.run("return Object.keys(window).includes('collectord')"), False)
            browser.run("document.getElementById('form').submit()")
            frames = {}
            for frame in ("frame", "answer"):
                frames[frame] = browser.frame_text("#" + frame)
            self.assertNotIn("Sessions", frames["frame"])
            self.assertNotIn("steady", str(frames))

        for path in ("/", "/api/state", f"/sessions/{name}"):
            browser.open(f"http://rebind.test:{self.collector.port}{path}")
            self.assertIn("error", browser.visible_text())
            self.assertNotIn("steady", browser.visible_text())
        statuses = browser.run("""
          const body = JSON.stringify({session: arguments[0]}), headers = {"Content-Type": "application/json"};
          return Promise.all([fetch("/api/state"), fetch("/api/stop", {method: "POST", headers, body})].map(f => f.then(r => r.status, () => 421)))""", name)
        self.assertEqual(statuses, [421, 421])  # Firefox keeps to the policy of the page, and does not ask

        events = self.collector.session(program.pid)["events"]
        self.collector.wait_for(program.pid, lambda s: s["state"] == "recording" and s["events"] > events)
        browser.open(f"http://127.0.0.1:{self.collector.port}/")  # the cookie still is one
        self.row(browser, program.pid, lambda r: "Stop" in r["buttons"])


if __name__ == "__main__":
    leave_without_browser()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
