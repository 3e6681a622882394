#!/usr/bin/env python3
"""A pprof profile through gzip and protoc, as JSON, with the checks of pprof's own reader: for tests.
Usage: read_profile.py FILE"""

import gzip
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import protoc_text  # noqa: E402

one = protoc_text.one


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with gzip.open(sys.argv[1], "rb") as file:
        profile = protoc_text.decode(file.read(), os.path.join(here, "profile.proto"),
                                     "perftools.profiles.Profile")
    texts = profile["string_table"]
    assert texts[0] == "", "the first string is not empty"
    functions = {one(f, "id"): texts[one(f, "name", 0)] for f in profile.get("function", [])}
    sources = {texts[one(f, "name", 0)]: [texts[one(f, "filename")], one(f, "start_line")]
               for f in profile.get("function", []) if "filename" in f}
    mappings = {one(m, "id"): m for m in profile.get("mapping", [])}
    assert len(functions) == len(profile.get("function", [])) and 0 not in functions
    locations = {}
    for location in profile.get("location", []):
        assert one(location, "id") not in locations, "a location is there twice"
        name = functions[one(location["line"][0], "function_id")]
        assert one(location["line"][0], "line", 0) == sources.get(name, ["", 0])[1]
        mapping = mappings[one(location, "mapping_id")] if "mapping_id" in location else None
        if mapping is not None:
            assert one(mapping, "memory_start", 0) <= one(location, "address")
            assert one(location, "address") < one(mapping, "memory_limit")
        locations[one(location, "id")] = [name, mapping and texts[one(mapping, "filename")],
                                          one(location, "address", 0)]
    samples = []
    for sample in profile.get("sample", []):
        assert len(sample["value"]) == len(profile["sample_type"]), "as many values as types"
        samples.append({
            "stack": [locations[i][0] for i in reversed(sample["location_id"])],
            "files": [locations[i][1] for i in reversed(sample["location_id"])],
            "addresses": [locations[i][2] for i in reversed(sample["location_id"])],
            "values": sample["value"],
            "labels": {texts[one(label, "key")]: texts[one(label, "str")]
                       for label in sample.get("label", [])},
        })
    json.dump({
        "types": [[texts[one(t, "type")], texts[one(t, "unit")]] for t in profile["sample_type"]],
        "default": texts[one(profile, "default_sample_type", 0)],
        "samples": samples,
        "sources": sources,
        "time_nanos": one(profile, "time_nanos", 0),
        "duration_nanos": one(profile, "duration_nanos", 0),
        "mappings": [{"start": one(m, "memory_start", 0), "limit": one(m, "memory_limit"),
                      "file": texts[one(m, "filename")], "build_id": texts[one(m, "build_id", 0)]}
                     for m in profile.get("mapping", [])],
        "comments": [texts[i] for i in profile.get("comment", [])],
    }, sys.stdout)


if __name__ == "__main__":
    main()
