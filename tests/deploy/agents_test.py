#!/usr/bin/env python3
"""deploy/agents.sh: what it says and makes for each target. Without an NDK and without a Mac: what is
for them is in fake_ndk and fake_mac, and shows the shape of what is made, not that it runs.
Usage: agents_test.py SOURCE_DIR CROSS_BUILDS [CLASS...]; with 77 when all of it is skipped"""

import json
import os
import plistlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from xml.etree import ElementTree

SOURCE, CROSS = (os.path.abspath(word) for word in sys.argv[1:3])
del sys.argv[1:3]
HERE = os.path.join(SOURCE, "tests/deploy")
FAKE_NDK = os.path.join(HERE, "fake_ndk")
FAKE_MAC = os.path.join(HERE, "fake_mac")
PATH_OF_A_MAC = FAKE_MAC + ":" + os.environ["PATH"]
CHECK = os.path.join(SOURCE, "tests/agent/check_library.py")
HEADER = os.path.join(SOURCE, "agent/include/collect/agent.h")
ABIS = {"arm64-v8a": "aarch64-linux-gnu-", "x86_64": ""}
MACHINES = {"arm64-v8a": 183, "x86_64": 62}  # e_machine
OK, FAILED, USAGE, MISSING = 0, 1, 2, 3


def agents(*words, **environment):
    known = {**os.environ, "ANDROID_NDK": "", **environment}
    return subprocess.run(["/bin/bash", os.path.join(SOURCE, "deploy/agents.sh"), *words], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False, env=known)


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def built(preset):
    return os.path.exists(os.path.join(CROSS, preset, "lib/libcollect_agent.a"))


def contents(folder):
    return {os.path.relpath(os.path.join(place, name), folder): read(place, name)
            for place, _, names in os.walk(folder) for name in names}


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @staticmethod
    def made(*words, **environment):
        """The files that agents.sh makes: name -> bytes."""
        with tempfile.TemporaryDirectory() as output:
            done = agents(*words, "--output", output, **environment)
            if done.returncode != OK:
                raise AssertionError(done.stdout + done.stderr)
            return contents(output)

    def unpacked(self, archive, content):
        path = os.path.join(self.folder, archive)
        with open(path, "wb") as file:
            file.write(content)
        return path


class CommandLine(WithFolder):
    def refused(self, code, words, *arguments, **environment):
        done = agents(*arguments, "--output", os.path.join(self.folder, "out"), **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out")), "something was begun")

    def test_help_names_every_target(self):
        done = agents("--help")
        self.assertEqual(done.returncode, OK)
        for target in ("linux-arm64-glibc", "linux-arm64-musl", "android-arm64-v8a", "ios", "macos"):
            self.assertIn(target, done.stdout)

    def test_refuses_unknown_targets(self):
        self.refused(USAGE, "no target is named")
        self.refused(USAGE, "windows is no target and no option", "windows")
        self.refused(USAGE, "only for arm64-v8a and x86_64", "android-armeabi-v7a")
        done = agents("android", "--ndk")
        self.assertEqual((done.returncode, done.stderr), (USAGE, "error: --ndk needs a folder\n"))

    def test_an_ndk_that_is_not_there_or_too_old(self):
        self.refused(MISSING, "give --ndk DIR", "android")
        self.refused(MISSING, "nowhere is no NDK", "android", "--ndk", "/nowhere")
        old = os.path.join(self.folder, "r21")
        os.makedirs(os.path.join(old, "build/cmake"))
        for name, text in (("source.properties", "Pkg.Desc = Android NDK\nPkg.Revision = 21.4.7075529\n"),
                           ("build/cmake/android.toolchain.cmake", "")):
            with open(os.path.join(old, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.refused(MISSING, "is r21: r27 or later is needed", "android", "--ndk", old)
        self.refused(MISSING, "is r21: r27 or later is needed", "android", ANDROID_NDK=old)

    def test_no_mac(self):
        self.refused(MISSING, "are built on a Mac with Xcode; this is Linux", "ios", "macos")
        path = os.path.join(self.folder, "mac")
        os.mkdir(path)
        shutil.copy(os.path.join(FAKE_MAC, "uname"), path)
        self.refused(MISSING, "there is no xcodebuild: install Xcode", "macos",
                     PATH=path + ":" + os.environ["PATH"])

    def test_every_missing_program_is_named_with_its_package(self):
        # All that the script itself runs, and none of what builds.
        path = os.path.join(self.folder, "bin")
        os.mkdir(path)
        for name in ("dirname", "sed", "sort", "uname"):
            os.symlink(shutil.which(name), os.path.join(path, name))
        done = agents("linux-arm64-glibc", "--output", os.path.join(self.folder, "out"), PATH=path)
        self.assertEqual(done.returncode, MISSING, done.stderr)
        for words in ("no cmake: apt-get install cmake", "no protoc: apt-get install protobuf-compiler",
                      "no protoc-gen-nanopb: apt-get install nanopb",
                      "no aarch64-linux-gnu-g++: apt-get install g++-aarch64-linux-gnu"):
            self.assertIn(words, done.stderr)

    def test_no_nanopb(self):
        self.refused(MISSING, "there is no /nowhere/pb_decode.c", "linux-arm64-glibc", "--nanopb", "/nowhere")


class Linux(WithFolder):
    def expect_archive(self, target, more):
        first = self.made(target, "--build", CROSS)
        (archive, content), = first.items()
        stem = archive.removesuffix(".tar.gz")
        self.assertTrue(stem.startswith("collect-agent-") and stem.endswith("-" + target), stem)
        expected = {"AGENT.md", "include/collect/agent.h", "lib/collect_xray.o", "lib/libcollect_agent.a",
                    "lib/pkgconfig/collect-agent.pc"}
        expected |= {f"lib/cmake/collect_agent/collect_agent{leaf}.cmake"
                     for leaf in ("Config", "ConfigVersion", "Targets", "Targets-relwithdebinfo")}
        with tarfile.open(self.unpacked(archive, content)) as tar:
            members = tar.getmembers()
            self.assertEqual({member.name for member in members}, {stem + "/" + leaf for leaf in expected | more})
            self.assertEqual({member.mtime for member in members}, {315532800})
            self.assertEqual({(member.uid, member.gid) for member in members}, {(0, 0)})
            for member in members:
                self.assertNotIn(SOURCE.encode(), tar.extractfile(member).read(), member.name)
        self.assertEqual(self.made(target, "--build", CROSS), first)
        later = self.made(target, "--build", CROSS, SOURCE_DATE_EPOCH="1700000000")
        self.assertNotEqual(later[archive], content)

    @unittest.skipUnless(built("arm64"), "arm64 is not built")
    def test_for_glibc(self):
        self.expect_archive("linux-arm64-glibc", {"lib/libcollect_agent.so"})

    @unittest.skipUnless(built("arm64-musl"), "arm64-musl is not built")
    def test_for_static_programs(self):
        self.expect_archive("linux-arm64-musl", set())


@unittest.skipUnless(built("android") and built("android-x86_64"), "android is not built")
class Android(WithFolder):
    @classmethod
    def setUpClass(cls):
        cls.files = cls.made("android", "--ndk", FAKE_NDK, "--build", CROSS)

    def setUp(self):
        super().setUp()
        self.place, = (os.path.dirname(name) for name in self.files if name.endswith(".aar"))
        version = os.path.basename(self.place)
        self.aar = zipfile.ZipFile(self.unpacked("a.aar", self.files[f"{self.place}/collect-agent-{version}.aar"]))
        self.addCleanup(self.aar.close)
        self.version = version

    def json(self, name):
        return json.loads(self.aar.read(name))

    def test_makes_the_aar_pom_and_libraries(self):
        stem = f"android/maven/org/collectord/collect-agent/{self.version}/collect-agent-{self.version}"
        self.assertEqual(set(self.files), {stem + ".aar", stem + ".pom"} |
                         {f"android/lib/{abi}/libcollect_agent.so" for abi in ABIS})

    def test_aar_holds_its_expected_files(self):
        module = "prefab/modules/collect_agent/"
        expected = {"AndroidManifest.xml", "classes.jar", "R.txt", "prefab/prefab.json",
                    module + "module.json", module + "include/collect/agent.h"}
        for abi in ABIS:
            expected |= {f"jni/{abi}/libcollect_agent.so", f"{module}libs/android.{abi}/abi.json",
                         f"{module}libs/android.{abi}/libcollect_agent.so"}
        self.assertEqual(set(self.aar.namelist()), expected)
        self.assertIsNone(self.aar.testzip())
        self.assertEqual({entry.date_time for entry in self.aar.infolist()}, {(1980, 1, 1, 0, 0, 0)})
        self.assertEqual(self.aar.read(module + "include/collect/agent.h"), read(HEADER))
        with zipfile.ZipFile(self.unpacked("c.jar", self.aar.read("classes.jar"))) as classes:
            self.assertEqual(classes.namelist(), ["META-INF/MANIFEST.MF"])

    def test_linked_preloaded_and_pushed_are_one_library_for_its_processor(self):
        for abi in ABIS:
            library = self.aar.read(f"jni/{abi}/libcollect_agent.so")
            self.assertEqual(library[:4], b"\x7fELF")
            self.assertEqual(int.from_bytes(library[18:20], "little"), MACHINES[abi])
            self.assertEqual(library, self.files[f"android/lib/{abi}/libcollect_agent.so"])
            self.assertEqual(library, self.aar.read(
                f"prefab/modules/collect_agent/libs/android.{abi}/libcollect_agent.so"))
            self.assertNotIn(b".debug_line", library)
            self.assertNotIn(SOURCE.encode(), library)

    def test_the_libraries_are_fit_for_android(self):
        for abi, tools in ABIS.items():
            path = self.unpacked(abi + ".so", self.aar.read(f"jni/{abi}/libcollect_agent.so"))
            done = subprocess.run([sys.executable, "-B", CHECK, path, "--tools=" + tools, "--android", "29"],
                                  text=True, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_prefab(self):
        """Keys and kinds as in com.google.prefab.api, whose readers take no others."""
        package = self.json("prefab/prefab.json")
        self.assertEqual(package, {"schema_version": 2, "name": "collect_agent", "version": self.version,
                                   "dependencies": []})
        self.assertRegex(package["version"], r"^\d+(\.\d+(\.\d+(\.\d+)?)?)?$")
        self.assertEqual(self.json("prefab/modules/collect_agent/module.json"),
                         {"export_libraries": [], "library_name": "libcollect_agent"})
        for abi in ABIS:
            self.assertEqual(self.json(f"prefab/modules/collect_agent/libs/android.{abi}/abi.json"),
                             {"abi": abi, "api": 29, "ndk": 27, "stl": "none", "static": False})

    def test_manifest_and_pom(self):
        manifest = ElementTree.fromstring(self.aar.read("AndroidManifest.xml"))
        android = "{http://schemas.android.com/apk/res/android}"
        self.assertEqual(manifest.get("package"), "org.collectord.agent")
        self.assertEqual(manifest.find("uses-sdk").get(android + "minSdkVersion"), "29")
        pom = ElementTree.fromstring(self.files[f"{self.place}/collect-agent-{self.version}.pom"])
        maven = "{http://maven.apache.org/POM/4.0.0}"
        self.assertEqual([pom.find(maven + name).text for name in ("groupId", "artifactId", "version", "packaging")],
                         ["org.collectord", "collect-agent", self.version, "aar"])

    def test_the_same_each_time(self):
        for preset in ("android", "android-x86_64"):  # linked again
            os.unlink(os.path.join(CROSS, preset, "lib/libcollect_agent.so"))
        self.assertEqual(self.made("android", "--ndk", FAKE_NDK, "--build", CROSS), self.files)

    def test_one_abi(self):
        files = self.made("android-arm64-v8a", "--ndk", FAKE_NDK, "--build", CROSS)
        self.assertEqual([name for name in files if name.endswith(".so")],
                         ["android/lib/arm64-v8a/libcollect_agent.so"])


@unittest.skipUnless(shutil.which("clang-19") and shutil.which("ld.lld-19"), "there is no clang-19")
class Unfit(WithFolder):
    """What check_library.py must find in a library that is not fit for Android."""

    def findings(self, code, *options):
        source, library = (os.path.join(self.folder, name) for name in ("a.c", "a.so"))
        with open(source, "w", encoding="utf-8") as file:
            file.write("int collect_agent_start(void);\n" + code)
        subprocess.run(["clang-19", "--target=x86_64-linux-android29", "-shared", "-nostdlib", "-fuse-ld=lld-19",
                        "-fPIC", "-Wl,-z,now,-z,nodelete,-z,max-page-size=16384", *options, source, "-o", library],
                       check=True)
        done = subprocess.run([sys.executable, "-B", CHECK, library, "--android", "29"], text=True,
                              capture_output=True, check=False)
        return done.stdout.replace(library + ": ", "").splitlines()[:-1]

    def test_each_fault(self):
        fine = "int collect_agent_start(void) { return 0; }\n"
        self.assertEqual(self.findings(fine), [])
        self.assertIn("has a segment aligned to 0x1000, not 0x4000",
                      self.findings(fine, "-Wl,-z,max-page-size=4096"))
        self.assertIn("has an executable stack", self.findings(fine, "-Wl,-z,execstack"))
        self.assertIn("has a search path of its own", self.findings(fine, "-Wl,-rpath,/x"))
        calls = "int {0}(void);\nint collect_agent_start(void) {{ return {0}(); }}\n"
        self.assertEqual(self.findings(calls.format("memfd_create")),
                         ["uses memfd_create", "uses memfd_create, which Android has from API 30 on, not 29"])
        self.assertIn("does not have", self.findings(calls.format("pidfd_open"))[-1])
        self.assertIn("has text relocations", self.findings(
            "extern int environ;\nint collect_agent_start(void) { return environ; }\n"
            'asm(".text\\n.quad environ");', "-Wl,-z,notext"))
        self.assertTrue(any("STATIC_TLS" in line for line in self.findings(
            "extern __thread int x __attribute__((tls_model(\"initial-exec\")));\n__thread int x;\n"
            "int collect_agent_start(void) { return x; }\n")))


class Apple(WithFolder):
    def test_the_xcframework_and_its_package(self):
        words = ("ios", "macos", "--build", os.path.join(self.folder, "build"))
        nanopb = ("--nanopb", self.nanopb())
        files = self.made(*words, *nanopb, PATH=PATH_OF_A_MAC)
        framework = "apple/CollectAgent.xcframework/"
        info = plistlib.loads(files[framework + "Info.plist"])
        presets = {"ios-arm64": "apple-ios", "ios-arm64-simulator": "apple-ios-simulator",
                   "macos-arm64": "apple-macos"}
        self.assertEqual([part["LibraryIdentifier"] for part in info["AvailableLibraries"]], sorted(presets))
        expected = {"apple/Package.swift", "apple/CollectAgent.xcframework.zip", framework + "Info.plist"}
        for part, preset in presets.items():
            headers = framework + part + "/Headers/"
            expected |= {framework + part + "/libcollect_agent.a", headers + "collect/agent.h",
                         headers + "CollectAgent/module.modulemap"}
            self.assertEqual(files[framework + part + "/libcollect_agent.a"].decode().strip(), preset)
            self.assertEqual(files[headers + "collect/agent.h"], read(HEADER))
        self.assertEqual(set(files), expected)
        with zipfile.ZipFile(self.unpacked("x.zip", files["apple/CollectAgent.xcframework.zip"])) as packed:
            self.assertEqual({"apple/" + name for name in packed.namelist()},
                             {name for name in files if name.startswith(framework)})
        self.assertEqual(self.made(*words, *nanopb, PATH=PATH_OF_A_MAC), files)

    def nanopb(self):
        folder = os.path.join(self.folder, "nanopb")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "pb_decode.c"), "w", encoding="utf-8"):
            return folder

    def test_xcodebuild_fails(self):
        done = agents("macos", "--output", os.path.join(self.folder, "out"), "--build",
                      os.path.join(self.folder, "build"), "--nanopb", self.nanopb(),
                      PATH=PATH_OF_A_MAC, FAKE_XCODEBUILD="fails")
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("xcodebuild made no", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out/apple/Package.swift")))

    def test_the_manifest_names_the_framework(self):
        text = read(SOURCE, "deploy/ios/Package.swift").decode()
        self.assertRegex(text, r"\A// swift-tools-version:\d+\.\d+\n")
        self.assertIn('.binaryTarget(name: "CollectAgent", path: "CollectAgent.xcframework")', text)

    @unittest.skipUnless(shutil.which("clang-19"), "there is no clang-19")
    def test_the_module_is_found_where_xcode_lays_the_headers(self):
        sys.path.insert(0, os.path.join(SOURCE, "deploy/ios"))
        sys.dont_write_bytecode = True
        import make_xcframework
        headers = os.path.join(self.folder, "include")
        make_xcframework.lay_headers(headers, HEADER)
        program = "@import CollectAgent;\nint f(void) { return collect_agent_start(0); }\n"
        subprocess.run(["clang-19", "--target=arm64-apple-ios15.0", "-ffreestanding", "-fsyntax-only", "-Werror",
                        "-fmodules", "-fmodules-cache-path=" + os.path.join(self.folder, "cache"),
                        "-I", headers, "-x", "objective-c", "-"], input=program, text=True, check=True)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if len(outcome.skipped) == outcome.testsRun:
        sys.exit(77)
    sys.exit(not outcome.wasSuccessful())
