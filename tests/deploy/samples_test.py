#!/usr/bin/env python3
"""The sample apps' build files, as far as this machine can say: that they are well formed, and name what
deploy/agents.sh makes. Gradle, Xcode and XcodeGen are not here. Usage: samples_test.py SOURCE_DIR"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

SOURCE = os.path.abspath(sys.argv[1])
del sys.argv[1:2]
sys.path.insert(0, os.path.join(SOURCE, "deploy/android"))
import make_aar

ANDROID = os.path.join(SOURCE, "deploy/android/example")
IOS = os.path.join(SOURCE, "deploy/ios/example")
NAME = "{http://schemas.android.com/apk/res/android}name"
# What the activity takes of Android's classes.
CLASSES = {
    "android/os/Bundle.java": "package android.os; public class Bundle {}",
    "android/content/Context.java": "package android.content; public class Context {}",
    "android/view/View.java": "package android.view; public class View {}",
    "android/app/Activity.java":
        "package android.app; public class Activity extends android.content.Context {"
        " protected void onCreate(android.os.Bundle state) {}"
        " public void setContentView(android.view.View view) {} }",
    "android/widget/TextView.java":
        "package android.widget; public class TextView extends android.view.View {"
        " public TextView(android.content.Context context) {}"
        " public final void setText(CharSequence text) {} }",
}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def agents_sh(name):
    """The value of a name=value in deploy/agents.sh."""
    return re.search(rf"\b{name}=(\d+)", read(SOURCE, "deploy/agents.sh")).group(1)


def balanced(text):
    """Whether brackets close as they open, outside strings and comments; no more than that."""
    text = re.sub(r'//[^\n"]*$|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", text, flags=re.S | re.M)
    open_ones = []
    for letter in text:
        if letter in "([{":
            open_ones.append(letter)
        elif letter in ")]}" and (not open_ones or open_ones.pop() + letter not in ("()", "[]", "{}")):
            return False
    return not open_ones


class Gradle(unittest.TestCase):
    def setUp(self):
        self.app = read(ANDROID, "app/build.gradle.kts")
        self.settings = read(ANDROID, "settings.gradle.kts")

    def test_brackets(self):
        self.assertTrue(balanced(self.app))
        self.assertTrue(balanced(self.settings))

    def test_the_app_takes_the_aar_that_is_made(self):
        version = re.search(r"project\(collectord VERSION ([\d.]+)", read(SOURCE, "CMakeLists.txt")).group(1)
        self.assertIn(f'implementation("{make_aar.GROUP}:{make_aar.ARTIFACT}:{version}")', self.app)
        self.assertIn(f'includeGroup("{make_aar.GROUP}")', self.settings)
        self.assertIn("prefab = true", self.app)
        self.assertIn(f'pickFirsts += "**/{make_aar.LIBRARY}"', self.app)

    def test_it_is_for_what_the_aar_is_for(self):
        self.assertIn(f"minSdk = {agents_sh('android_api')}\n", self.app)
        abis = re.search(r"val abis = listOf\((.*)\)", self.app).group(1).replace('"', "").split(", ")
        self.assertIn(f'android) abis="{" ".join(abis)}"', read(SOURCE, "deploy/agents.sh"))
        ndk = re.search(r'ndkVersion = "(\d+)\.', self.app).group(1)
        self.assertGreaterEqual(int(ndk), int(agents_sh("oldest_ndk")))

    def test_the_repository_is_where_agents_sh_lays_it(self):
        place = re.search(r"^collect\.maven=(.*)$", read(ANDROID, "gradle.properties"), re.M).group(1)
        self.assertEqual(os.path.normpath(os.path.join(ANDROID, place)),
                         os.path.join(SOURCE, "build/agents/android/maven"))

    def test_every_file_that_is_named_is_there(self):
        self.assertIn('include(":app")', self.settings)
        for path in re.findall(r'(?<!layout\.)\b(?:file|rootDir\.resolve)\("([^"]+)"\)', self.app):
            base = ANDROID if path.startswith("..") else os.path.join(ANDROID, "app")
            self.assertTrue(os.path.exists(os.path.join(base, path)), path)

    def test_cmake_finds_what_prefab_makes(self):
        text = read(ANDROID, "app/src/main/cpp/CMakeLists.txt")
        self.assertIn(f"find_package({make_aar.PACKAGE} CONFIG REQUIRED)", text)
        self.assertIn(f"PRIVATE {make_aar.PACKAGE}::{make_aar.MODULE})", text)
        least = re.search(r"cmake_minimum_required\(VERSION (.*)\)", text).group(1)
        self.assertIn(f'version = "{least}"', self.app)

    def test_manifest_activity_and_native_method_fit(self):
        space = re.search(r'namespace = "(.*)"', self.app).group(1)
        activity = ElementTree.parse(os.path.join(ANDROID, "app/src/main/AndroidManifest.xml")).find(
            "application/activity").get(NAME)
        java = read(ANDROID, "app/src/main/java", *space.split("."), activity.lstrip(".") + ".java")
        method = re.search(r"native int (\w+)\(", java).group(1)
        self.assertIn("Java_" + (space + activity).replace(".", "_") + "_" + method + "(",
                      read(ANDROID, "app/src/main/cpp/app.c"))
        library = re.search(r'loadLibrary\("(\w+)"\)', java).group(1)
        self.assertIn(f"add_library({library} SHARED", read(ANDROID, "app/src/main/cpp/CMakeLists.txt"))

    @unittest.skipUnless(shutil.which("javac"), "there is no javac")
    def test_the_activity_is_java(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in CLASSES.items():
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            subprocess.run(["javac", "-Xlint:all", "-Werror", "-sourcepath", folder, "-implicit:none", "-d", folder,
                            os.path.join(ANDROID, "app/src/main/java/org/collectord/example/MainActivity.java")],
                           check=True)


class Xcode(unittest.TestCase):
    def test_the_project_names_what_is_there(self):
        text = read(IOS, "project.yml")
        self.assertNotIn("\t", text)
        place = re.search(r"path: (\S+)", text).group(1)
        self.assertEqual(os.path.normpath(os.path.join(IOS, place)), os.path.join(SOURCE, "build/agents/apple"))
        package = re.search(r'let package = Package\(\s*name: "(\w+)"', read(SOURCE, "deploy/ios/Package.swift")).group(1)
        self.assertRegex(text, rf"(?m)^packages:\n  {package}:\n")
        self.assertIn(f"- package: {package}\n", text)
        for path in re.findall(r"sources: \[(.*)\]|BRIDGING_HEADER: (\S+)", text):
            self.assertTrue(os.path.exists(os.path.join(IOS, "".join(path))), path)
        self.assertIn('iOS: "15.0"', text)
        self.assertIn("collect_apple(iOS ios 15.0)", read(SOURCE, "cmake/toolchains/apple-ios.cmake"))

    def test_swift_calls_functions_that_exist(self):
        swift = read(IOS, "Sources/ExampleApp.swift")
        self.assertTrue(balanced(swift))
        self.assertTrue(balanced(read(SOURCE, "deploy/ios/Package.swift")))
        header = read(SOURCE, "agent/include/collect/agent.h")
        for name in set(re.findall(r"\bcollect_\w+", swift)):
            self.assertRegex(header, rf"\b{name}\b")
        for field in re.findall(r"\boptions\.(\w+) =", swift):
            self.assertRegex(header, rf"\b{field};")
        self.assertIn("example_work(", read(IOS, "Sources/work.h"))

    @unittest.skipUnless(shutil.which("clang-19"), "there is no clang-19")
    def test_the_traced_code_compiles_for_ios(self):
        subprocess.run(["clang-19", "--target=arm64-apple-ios15.0", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                        "-finstrument-functions", os.path.join(IOS, "Sources/work.c")], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
