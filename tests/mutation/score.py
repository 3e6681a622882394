#!/usr/bin/python3
"""Builds the copy with its mistakes, runs the room's tests against each, prints the score.

    score.py WORK ROOM [--tests REGEX] [--jobs N]

WORK has `tree` (the copy) and `mutants.json`, both from plant.py. A mistake that does not compile is
taken out and not counted. Those that equivalent.txt names change nothing that anybody could see, and
are not counted either.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

LEAST_SCORE = 0.90
# A test that takes this much longer than without a mistake hangs, which is noticed.
SLOWER, LEAST_LIMIT_S = 5, 20


class Copy:
    def __init__(self, work, room, expression):
        self.tree = os.path.join(work, "tree")
        self.build = os.path.join(self.tree, "build", "release")
        self.room, self.expression = room, expression

    def text(self, path):
        with open(os.path.join(self.tree, path)) as source:
            return source.read()

    def test_folder(self):
        """tests/ROOM; where the room has none of its own, that of the folder around it."""
        folder = os.path.join(self.tree, "tests", self.room)
        while not os.path.exists(os.path.join(folder, "CMakeLists.txt")):
            folder = os.path.dirname(folder)
        return folder + "/"

    def tests(self):
        """CTest's tests of the room: name, command, environment, directory."""
        shown = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"],
                               capture_output=True, text=True, check=True)
        listing = json.loads(shown.stdout)
        graph = listing["backtraceGraph"]
        folder = self.test_folder()

        def is_of_room(test):
            node = graph["nodes"][test["backtrace"]]
            files = set()
            while True:
                files.add(graph["files"][node["file"]])
                if "parent" not in node:
                    break
                node = graph["nodes"][node["parent"]]
            return any(os.path.abspath(name).startswith(folder) for name in files)

        for test in listing["tests"]:
            wanted = re.search(self.expression, test["name"]) if self.expression else is_of_room(test)
            properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
            # Those of one fixture run in an order: one builds for another system, others use that.
            if not wanted or "FIXTURES_SETUP" in properties or "FIXTURES_REQUIRED" in properties:
                continue
            yield {"name": test["name"], "command": test.get("command"),
                   "environment": dict(pair.split("=", 1)
                                       for pair in properties.get("ENVIRONMENT", [])),
                   "directory": properties.get("WORKING_DIRECTORY", self.build)}

    def make(self, targets):
        return subprocess.run(["ninja", "-C", self.build, "-k", "0", *targets],
                              capture_output=True, text=True)

    def programs(self):
        """The program that each test runs, also of those that are not built yet."""
        found = {}
        for folder, _, files in os.walk(self.build):
            if "CTestTestfile.cmake" not in files:
                continue
            with open(os.path.join(folder, "CTestTestfile.cmake")) as listing:
                for name, program in re.findall(r'^add_test\((?:\[=*\[)?([^]" ]+)(?:\]=*\])? "([^"]+)"',
                                                listing.read(), re.M):
                    found[name] = os.path.basename(program)
        return found

    def targets(self, tests):
        """A test program is a target; a script is given what it needs of the build, else needs `all`."""
        listed = subprocess.run(["ninja", "-C", self.build, "-t", "targets", "all"],
                                capture_output=True, text=True, check=True).stdout
        known = set(re.findall(r"^(\S+): ", listed, re.M))
        program = self.programs()
        wanted = set()
        for test in tests:
            given = {os.path.relpath(word, self.build) for word in (test["command"] or [])[1:]
                     if os.path.isabs(word)}
            needed = {program.get(test["name"]), test["name"]} & known or given & known
            if not needed:
                return ["all"]
            wanted |= needed
        return sorted(wanted)


def still_planted(copy, mutants):
    """Without those that a run before this one took out of the same copy."""
    texts = {path: copy.text(path) for path in {mutant["path"] for mutant in mutants}}
    return [mutant for mutant in mutants if asks(mutant) in texts[mutant["path"]]]


def compile_without_broken(copy, mutants, targets):
    """Builds; takes out what does not compile, by the lines that the compiler complains about."""
    left = still_planted(copy, mutants)
    for _ in range(12):
        done = copy.make(targets)
        if done.returncode == 0:
            return left
        complained = set()
        for path, line in re.findall(r"([^\s:]+):(\d+):\d+: error", done.stdout):
            complained.add((os.path.relpath(os.path.join(copy.build, path), copy.tree), int(line)))
        for path, line in re.findall(r"([^\s:]+):(\d+):\d+:   (?:required from|in 'constexpr')",
                                     done.stdout):
            complained.add((os.path.relpath(os.path.join(copy.build, path), copy.tree), int(line)))
        # plant.py puts one line in front of each file.
        broken = [mutant for mutant in left
                  if any((mutant["path"], line + 1) in complained
                         for line in range(mutant["line"],
                                           mutant["line"] + mutant["before"].count("\n") + 1))]
        # A warning may stand behind the mistake that caused it.
        for path, line in [] if broken else complained:
            before = [mutant for mutant in left if mutant["path"] == path and mutant["line"] < line]
            nearest = max(before, key=lambda mutant: mutant["line"], default=None)
            if nearest is not None and nearest not in broken:
                broken.append(nearest)
        if not broken:
            sys.stderr.write(done.stdout[-6000:])
            sys.exit("score.py: the copy does not build, and no mistake is where it fails")
        take_out(copy, broken)
        left = [mutant for mutant in left if mutant not in broken]
    sys.exit("score.py: the copy does not build after twelve tries")


def asks(mutant):
    """What is in the source where the mistake is."""
    return f"::mutant::on({mutant['id']})"


def take_out(copy, broken):
    """The text as it was: the changed code itself may be what does not compile."""
    for mutant in broken:
        path = os.path.join(copy.tree, mutant["path"])
        text = copy.text(mutant["path"])
        one = lambda code: " ".join(code.split())
        ask = asks(mutant)
        if mutant["after"] is None:
            text = text.replace(f"if ({ask}) {{}} else ", "")
        else:
            is_asked = "static_cast<bool>" if mutant["what"] == "turned round" else ""
            text = text.replace(
                f"({ask} ? ({one(mutant['after'])}) : {is_asked}({one(mutant['before'])}))",
                one(mutant["before"]))
        with open(path, "w") as source:
            source.write(text)


def run(test, extra, limit):
    """'passed', 'failed' or 'hung', and the seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)  # some tests become another user
        environment = {**os.environ, **test["environment"], **extra, "TMPDIR": scratch,
                       "GTEST_BRIEF": "1"}
        process = subprocess.Popen(test["command"], cwd=test["directory"], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code = process.wait(limit)
            outcome = "passed" if code == 0 else "failed"
        except subprocess.TimeoutExpired:
            outcome = "hung"
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
        process.wait()
    return outcome, time.monotonic() - began


def cases(test):
    """The GoogleTest cases of a test program, each as a test; a test of another kind as it is."""
    try:
        listed = subprocess.run([*test["command"], "--gtest_list_tests"], cwd=test["directory"],
                                env={**os.environ, **test["environment"]}, capture_output=True,
                                stdin=subprocess.DEVNULL, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return [test]
    lines = listed.stdout.splitlines()
    suites = [line for line in lines if re.match(r"[\w/]+\.(\s|$)", line)]
    if listed.returncode != 0 or not suites:
        return [test]
    found, suite = [], ""
    for line in lines:
        name = line.split("#")[0].strip()
        if re.match(r"[\w/]+\.$", name) and not line.startswith(" "):
            suite = name
        elif suite and line.startswith("  ") and "DISABLED_" not in suite + name:
            found.append({**test, "name": f"{test['name']} {suite}{name}",
                          "command": [*test["command"], f"--gtest_filter={suite}{name}"]})
    return found


def measure(test, number, count, work):
    """How long the test takes without a mistake, and which mistakes it reaches."""
    reach = os.path.join(work, f"{number}.reach")
    with open(reach, "wb") as bytes_:
        bytes_.write(bytes(count + 1))
    test["outcome"], seconds = run(test, {"MUTANT_ID": "0", "MUTANT_REACH": reach}, 300)
    with open(reach, "rb") as bytes_:
        test["reached"] = {number for number, byte in enumerate(bytes_.read()) if byte}
    os.unlink(reach)
    test["limit"] = max(LEAST_LIMIT_S, SLOWER * seconds)
    test["seconds"] = seconds
    return test


def measure_all(programs, count, work, pool):
    """All cases that pass without a mistake, the fastest first."""
    tests = [case for found in pool.map(cases, programs) for case in found]
    began = time.monotonic()
    tests = list(pool.map(lambda pair: measure(pair[1], pair[0], count, work), enumerate(tests)))
    passed = [test for test in tests if test["outcome"] == "passed"]
    for test in tests:
        if test["outcome"] != "passed":
            print(f"LEFT OUT {test['name']}: {test['outcome']} without any mistake", flush=True)
    if not passed:
        sys.exit("score.py: no test passes without a mistake")
    print(f"{len(passed)} cases of {len(programs)} tests, {time.monotonic() - began:.0f} s without a"
          " mistake", flush=True)
    return sorted(passed, key=lambda test: test["seconds"])


def judge(mutant, tests):
    reached = False
    for test in tests:
        if mutant["id"] not in test["reached"]:
            continue
        reached = True
        outcome, _ = run(test, {"MUTANT_ID": str(mutant["id"])}, test["limit"])
        if outcome != "passed":
            return {**mutant, "noticed": test["name"], "how": outcome}
    return {**mutant, "noticed": None, "how": "no test failed" if reached else "no test reaches it"}


def equivalents():
    """equivalent.txt: PATH | FUNCTION | BEFORE | WHAT | why no one could see it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.txt")
    known = set()
    with open(path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                known.add(tuple(part.strip() for part in line.split("|")[:4]))
    return known


def key(mutant):
    return (mutant["path"], mutant["function"], " ".join(mutant["before"].split()).replace("|", "/"),
            mutant["what"].replace("|", "/"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("work")
    parser.add_argument("room")
    parser.add_argument("--tests", default="")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()

    # Tests run in other directories, and name the file of what they reach.
    options.work = os.path.abspath(options.work)
    copy = Copy(options.work, options.room, options.tests)
    with open(os.path.join(options.work, "mutants.json")) as planted:
        mutants = json.load(planted)
    tests = list(copy.tests())
    if not tests:
        sys.exit(f"score.py: no test is defined below tests/{options.room}; --tests names some")
    targets = copy.targets(tests)
    began = time.monotonic()
    compiled = compile_without_broken(copy, mutants, targets)
    print(f"{len(compiled)} of {len(mutants)} compile; built in {time.monotonic() - began:.0f} s",
          flush=True)
    programs = [test for test in copy.tests() if test["command"]]
    known = equivalents()
    counted = [mutant for mutant in compiled if key(mutant) not in known]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tests = measure_all(programs, len(mutants), options.work, pool)
        judged = list(pool.map(lambda mutant: judge(mutant, tests), counted))
    with open(os.path.join(options.work, "judged.json"), "w") as out:
        json.dump(judged, out, indent=1)
    survivors = [mutant for mutant in judged if mutant["noticed"] is None]
    for mutant in survivors:
        before = " ".join(mutant["before"].split())
        print(f"NOT NOTICED {mutant['path']}:{mutant['line']} {mutant['function']}: {before}"
              f"  [{mutant['what']}] {mutant['how']}")
    noticed = len(judged) - len(survivors)
    score = noticed / len(judged) if judged else 0
    hung = sum(mutant["how"] == "hung" for mutant in judged)
    print(f"{options.room}: {noticed} of {len(judged)} mistakes noticed, {100 * score:.0f} %"
          f" ({hung} by hanging; {len(compiled) - len(counted)} equivalent,"
          f" {len(mutants) - len(compiled)} did not compile)")
    sys.exit(0 if score >= LEAST_SCORE else 1)


if __name__ == "__main__":
    main()
