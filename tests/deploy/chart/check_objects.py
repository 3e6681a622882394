#!/usr/bin/env python3
"""Holds Kubernetes objects, a JSON list on standard input, against the types of Debian's
python3-kubernetes: fields that do not exist, values of another type, fields that are missing. Prints
what is wrong, a line each. Exit code 77: the module is not here. Usage: /usr/bin/python3 -B
check_objects.py"""

import json
import re
import sys

try:
    from kubernetes import client
except ModuleNotFoundError:
    sys.exit(77)

SIMPLE = {"str": str, "bool": bool, "int": int, "float": (int, float)}


def check(value, kind, where):
    if kind == "object" or value is None:  # an int-or-string, or what may be anything
        return
    if inner := re.fullmatch(r"list\[(.*)\]", kind):
        if not isinstance(value, list):
            yield f"{where}: not a list"
            return
        for at, one in enumerate(value):
            yield from check(one, inner[1], f"{where}[{at}]")
    elif inner := re.fullmatch(r"dict\(str, (.*)\)", kind):
        if not isinstance(value, dict):
            yield f"{where}: not an object"
            return
        for key, one in value.items():
            yield from check(one, inner[1], f"{where}.{key}")
    elif kind in SIMPLE:
        if not isinstance(value, SIMPLE[kind]) or (isinstance(value, bool) and kind != "bool"):
            yield f"{where}: {value!r} is not of type {kind}"
    elif kind != "datetime":
        yield from check_fields(value, getattr(client, kind), where)


def check_fields(value, model, where):
    if not isinstance(value, dict):
        yield f"{where}: not an object"
        return
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    for key, one in value.items():
        if key in names:
            yield from check(one, model.openapi_types[names[key]], f"{where}.{key}")
        else:
            yield f"{where}: there is no field {key}"
    try:  # says which field must be there
        model(**{names[key]: one for key, one in value.items() if key in names})
    except ValueError as error:
        yield f"{where}: {error}"


def main():
    wrong = []
    for one in json.load(sys.stdin):
        group, _, version = one["apiVersion"].rpartition("/")
        prefix = "".join(part.capitalize() for part in [group.split(".")[0] if "k8s.io" in group else "", version])
        model = getattr(client, prefix + one["kind"], None)
        where = one["kind"] + " " + one["metadata"]["name"]
        wrong += [where + ": there is no such kind"] if model is None else check_fields(one, model, where)
    print("\n".join(wrong))


if __name__ == "__main__":
    main()
