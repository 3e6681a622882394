#!/usr/bin/env python3
"""Makes the AAR with the agent, and a Maven repository with it, out of libraries that are built.

An app that only preloads the agent takes jni/; one that links it takes the Prefab package
(https://google.github.io/prefab/, its schema 2). Both hold the same library.

Usage: make_aar.py --output DIR --version V --api N --ndk MAJOR --header FILE ABI=LIBRARY..."""

import argparse
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fixed_archive

GROUP, ARTIFACT = "org.collectord", "collect-agent"
NAMESPACE = "org.collectord.agent"
# What CMake says: find_package(collect_agent CONFIG), collect_agent::collect_agent.
PACKAGE = MODULE = "collect_agent"
LIBRARY = "libcollect_agent.so"

POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
         xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 http://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <packaging>aar</packaging>
  <name>collectord's agent for apps on Android</name>
</project>
"""
MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="{namespace}">
    <uses-sdk android:minSdkVersion="{api}" />
</manifest>
"""


def json_text(value):
    return (json.dumps(value, indent=2) + "\n").encode()


def members(arguments, libraries):
    """What is in the AAR: name -> bytes."""
    module = f"prefab/modules/{MODULE}"
    yield "AndroidManifest.xml", MANIFEST.format(namespace=NAMESPACE, api=arguments.api).encode()
    # There is no class, no resource and nothing to shrink; the format wants the first two files.
    yield "classes.jar", fixed_archive.zip_bytes(
        [("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\n\r\n", 0o644)])
    yield "R.txt", b""
    yield "prefab/prefab.json", json_text(
        {"schema_version": 2, "name": PACKAGE, "version": arguments.version, "dependencies": []})
    yield f"{module}/module.json", json_text(
        {"export_libraries": [], "library_name": LIBRARY.removesuffix(".so")})
    yield f"{module}/include/collect/agent.h", fixed_archive.read(arguments.header)
    for abi, path in libraries:
        library = fixed_archive.read(path)
        yield f"jni/{abi}/{LIBRARY}", library
        yield f"{module}/libs/android.{abi}/{LIBRARY}", library
        # No STL: the agent is C++ inside, and needs no C++ library.
        yield f"{module}/libs/android.{abi}/abi.json", json_text(
            {"abi": abi, "api": arguments.api, "ndk": arguments.ndk, "stl": "none", "static": False})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--api", required=True, type=int, help="the oldest API level it runs on")
    parser.add_argument("--ndk", required=True, type=int, help="the NDK's major version")
    parser.add_argument("--header", required=True, help="collect/agent.h")
    parser.add_argument("libraries", nargs="+", metavar="ABI=LIBRARY")
    arguments = parser.parse_args()
    libraries = sorted(tuple(word.split("=", 1)) for word in arguments.libraries)

    maven = os.path.join(arguments.output, "maven")
    shutil.rmtree(maven, ignore_errors=True)
    place = os.path.join(maven, *GROUP.split("."), ARTIFACT, arguments.version)
    os.makedirs(place)
    stem = os.path.join(place, f"{ARTIFACT}-{arguments.version}")
    with open(stem + ".aar", "wb") as file:
        file.write(fixed_archive.zip_bytes(
            [(name, content, 0o644) for name, content in sorted(members(arguments, libraries))]))
    with open(stem + ".pom", "w", encoding="utf-8") as file:
        file.write(POM.format(group=GROUP, artifact=ARTIFACT, version=arguments.version))
    print(stem + ".aar")
    return 0


if __name__ == "__main__":
    sys.exit(main())
