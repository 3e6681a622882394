#!/usr/bin/env python3
"""Makes CollectAgent.xcframework, and a Swift package with it, by xcodebuild, out of static libraries.

Usage: make_xcframework.py --output DIR --header FILE LIBRARY..."""

import argparse
import hashlib
import os
import plistlib
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import fixed_archive

NAME = "CollectAgent"
# In a folder of its own: Xcode lays the headers of all packages of an app into one.
MODULE_MAP = f"""module {NAME} {{
  header "../collect/agent.h"
  export *
}}
"""


def lay_headers(folder, header):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "collect"))
    os.makedirs(os.path.join(folder, NAME))
    shutil.copyfile(header, os.path.join(folder, "collect/agent.h"))
    with open(os.path.join(folder, NAME, "module.modulemap"), "w", encoding="utf-8") as file:
        file.write(MODULE_MAP)


def sort_slices(framework):
    """xcodebuild lists them in any order."""
    path = os.path.join(framework, "Info.plist")
    with open(path, "rb") as file:
        info = plistlib.load(file)
    info["AvailableLibraries"].sort(key=lambda slice: slice["LibraryIdentifier"])
    with open(path, "wb") as file:
        plistlib.dump(info, file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--header", required=True, help="collect/agent.h")
    parser.add_argument("libraries", nargs="+", metavar="LIBRARY")
    arguments = parser.parse_args()
    os.makedirs(arguments.output, exist_ok=True)
    headers = os.path.join(arguments.output, "headers")
    lay_headers(headers, arguments.header)
    framework = os.path.join(arguments.output, NAME + ".xcframework")
    shutil.rmtree(framework, ignore_errors=True)  # xcodebuild replaces none
    command = ["xcodebuild", "-create-xcframework"]
    for library in arguments.libraries:
        command += ["-library", library, "-headers", headers]
    try:
        made = subprocess.run(command + ["-output", framework], check=False)
    except FileNotFoundError:
        print("error: there is no xcodebuild: this takes a Mac with Xcode", file=sys.stderr)
        return 3
    shutil.rmtree(headers)
    if made.returncode != 0 or not os.path.isdir(framework):
        print(f"error: xcodebuild made no {framework} (exit code {made.returncode})", file=sys.stderr)
        return 1
    sort_slices(framework)
    packed = fixed_archive.zip_folder(framework, NAME + ".xcframework")
    with open(framework + ".zip", "wb") as file:
        file.write(packed)
    shutil.copyfile(os.path.join(HERE, "Package.swift"), os.path.join(arguments.output, "Package.swift"))
    print(f"{framework}.zip, checksum {hashlib.sha256(packed).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
