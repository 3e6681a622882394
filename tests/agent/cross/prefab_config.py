#!/usr/bin/env python3
"""What Gradle does with an AAR that has a Prefab package, for CMake: unpacks it, chooses the library for
an ABI, an API level and no STL, and writes the package's config file. Prefab itself
(https://google.github.io/prefab/) is not here; its rules are. Usage: prefab_config.py AAR ABI API FOLDER"""

import json
import os
import sys
import zipfile

CONFIG = """add_library({package}::{module} SHARED IMPORTED)
set_target_properties({package}::{module} PROPERTIES
  IMPORTED_LOCATION "{library}"
  INTERFACE_INCLUDE_DIRECTORIES "{include}"
  INTERFACE_LINK_LIBRARIES "{libraries}")
"""


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def library_for(module, name, abi, api):
    for entry in sorted(os.listdir(os.path.join(module, "libs"))):
        platform, _, _ = entry.partition(".")
        folder = os.path.join(module, "libs", entry)
        facts = read_json(folder, "abi.json")
        # An older app could not load it; a library without an STL goes with every STL.
        if platform == "android" and facts["abi"] == abi and facts["api"] <= api and facts["stl"] == "none":
            path = os.path.join(folder, name + (".a" if facts["static"] else ".so"))
            if os.path.isfile(path):
                return path
    sys.exit(f"no library for {abi} and API {api} in {module}")


def main():
    aar, abi, api, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), os.path.abspath(sys.argv[4])
    with zipfile.ZipFile(aar) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith("prefab/")])
    package = read_json(folder, "prefab/prefab.json")
    if package["schema_version"] != 2 or package["dependencies"]:
        sys.exit(f"not understood: {package}")
    config = os.path.join(folder, package["name"] + "-config.cmake")
    with open(config, "w", encoding="utf-8") as file:
        for name in sorted(os.listdir(os.path.join(folder, "prefab/modules"))):
            module = os.path.join(folder, "prefab/modules", name)
            facts = read_json(module, "module.json")
            library = library_for(module, facts["library_name"] or "lib" + name, abi, api)
            file.write(CONFIG.format(package=package["name"], module=name, library=library,
                                     include=os.path.join(module, "include"),
                                     libraries=";".join(facts["export_libraries"])))


if __name__ == "__main__":
    main()
