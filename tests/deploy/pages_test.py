#!/usr/bin/env python3
"""What users read is what the programs do: the sample configuration, the manual pages and the words
that shell completion knows, against --help and --print-config.
Usage: pages_test.py SOURCE_DIR BUILD_DIR"""

import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

SOURCE, BUILD = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[:1]
sys.path[:0] = [os.path.join(SOURCE, "deploy/man"), os.path.join(SOURCE, "deploy/completion")]
sys.dont_write_bytecode = True

import command_help  # noqa: E402
import make_completion  # noqa: E402

COLLECTORD = os.path.join(BUILD, "bin/collectord")
COLLECTCTL = os.path.join(BUILD, "bin/collectctl")
SAMPLE = os.path.join(SOURCE, "deploy/collectord.toml")
# Flags that pages show and that belong to other programs.
FOREIGN_FLAGS = {"--now", "--its", "--own", "--output-on-failure"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def printed_settings(*flags):
    return tomllib.loads(output(COLLECTORD, "--root", "/nowhere", *flags, "--print-config"))


def commands_in(help_text):
    """In any group: a name, and behind two spaces or more what it does."""
    return re.findall(r"(?m)^  ([a-z][a-z-]*) {2,}\S", help_text)


def raw_help(program):
    """{words: --help} of the program and all of its commands: not read by our parser."""
    texts, waiting = {}, [(program,)]
    while waiting:
        command = waiting.pop()
        texts[command[1:]] = output(*command, "--help")
        waiting += [command + (word,) for word in commands_in(texts[command[1:]])]
    return texts


def flags_in(help_text):
    return {flag for names in re.findall(r"^  (-[\w,-]+)", help_text, re.M)
            for flag in names.split(",") if flag.startswith("--")}


class SampleConfiguration(unittest.TestCase):
    def test_every_key_is_there_with_its_default(self):
        lines = [line[1:] for line in read(SAMPLE).split("\n") if re.match(r"#\w+ = ", line)]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("\n".join(lines))
            file.flush()
            sample = printed_settings("--config", file.name)
        # A key that does not exist was refused; here is one that is missing, or has another default.
        shown = tomllib.loads("\n".join(lines))
        self.assertEqual(sorted(shown), sorted(sample),
                         "deploy/collectord.toml: each key of --print-config, as `#key = default`")
        self.assertEqual(sample, printed_settings())

    def test_as_it_is_it_changes_nothing(self):
        self.assertEqual(printed_settings("--config", SAMPLE), printed_settings())

    def test_every_key_is_in_the_daemons_document(self):
        document = read(os.path.join(SOURCE, "daemon/DAEMON.md"))
        table = document.partition("## Configuration")[2].partition("\n## ")[0]
        cells = {key.strip() for row in re.findall(r"^\| ([a-z_, ]+) \|", table, re.M)
                 for key in row.split(",")}
        self.assertEqual(sorted(set(printed_settings()) - cells), [])


class ManualPages(unittest.TestCase):
    def rendered(self, page):
        if shutil.which("man") is None:
            self.skipTest("man is not installed")
        path = os.path.join(BUILD, "deploy/man", "man" + page[-1], page + ".gz")
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", path], check=True, text=True,
                              capture_output=True,
                              env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8"})
        self.assertEqual(done.stderr, "", f"{page}: groff has something to say")
        return re.sub(r".\x08", "", done.stdout)

    def check(self, page, flags, others=frozenset()):
        """`others` may be on the page, in an example for instance."""
        text = self.rendered(page)
        shown = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))
        self.assertEqual(sorted(flags - shown), [], f"{page} does not have these flags")
        self.assertEqual(sorted(shown - flags - others - FOREIGN_FLAGS), [], f"{page}: there are no such flags")
        return text

    def test_the_daemons_page_has_its_flags(self):
        flags = flags_in(output(COLLECTORD, "--help"))
        self.assertGreater(len(flags), 10)
        self.check("collectord.8", flags)

    def test_the_clients_page_lists_commands_and_common_flags(self):
        commands = raw_help(COLLECTCTL)
        of_commands = set().union(*(flags_in(help_text) for help_text in commands.values()))
        text = self.check("collectctl.1", flags_in(output(COLLECTCTL, "help", "options")), of_commands)
        for words, help_text in commands.items():
            if not commands_in(help_text):
                self.assertIn(f"collectctl-{'-'.join(words)}(1)", text)

    def test_each_command_has_a_page_with_its_flags(self):
        common = flags_in(output(COLLECTCTL, "help", "options")) - {"--help", "--json"}
        for words, help_text in raw_help(COLLECTCTL).items():
            if not commands_in(help_text):
                page = f"collectctl-{'-'.join(words)}.1"
                with self.subTest(page):
                    text = self.rendered(page)
                    self.assertRegex(text, rf"(?m)^ +collectctl {' '.join(words)} \[OPTIONS\]")
                    shown = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))
                    self.assertEqual(sorted(flags_in(help_text) - common - shown), [])

    def test_other_programs_have_pages(self):
        for program in ("collect-conformance", "collect-load"):
            self.check(program + ".1", flags_in(output(os.path.join(BUILD, "bin", program), "--help")))

    def test_the_files_page_has_its_keys(self):
        text = self.rendered("collectord.toml.5")
        keys = set(re.findall(r"(?m)^ {7}(\w+) = .*$", text.partition("KEYS")[2].partition(
            "EXAMPLES")[0]))
        self.assertEqual(sorted(keys), sorted(printed_settings()))

    def test_pages_are_gzipped_the_same_each_time(self):
        pages = glob.glob(os.path.join(BUILD, "deploy/man/man?/*.gz"))
        self.assertGreater(len(pages), 40)
        for page in pages:
            with open(page, "rb") as file:
                header = file.read(8)
            self.assertEqual(header[4:8], b"\0\0\0\0", f"{page} has the time of its making in it")
            self.assertIn(b".TH ", gzip.open(page).read())


class Completion(unittest.TestCase):
    def test_every_word_for_a_value_is_known(self):
        for program in (COLLECTORD, COLLECTCTL):
            self.assertEqual(make_completion.unknown_words(command_help.read_command(program)), [],
                             "say in KINDS of deploy/completion/make_completion.py what these are")

    def test_values_have_speaking_names(self):
        """TEXT and ENUM are what CLI11 says when no one said what a value is."""
        for program in (COLLECTORD, COLLECTCTL):
            for command in make_completion.every_command(command_help.read_command(program)):
                for option in command.options():
                    self.assertNotIn(option.value, ("TEXT", "ENUM"),
                                     f"{command.name} {option.names[-1]}: give it a type_name()")


if __name__ == "__main__":
    unittest.main(verbosity=2)
