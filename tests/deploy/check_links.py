#!/usr/bin/env python3
"""Whether the documents of a folder point at what is there.
Usage: check_links.py DIRECTORY"""

import os
import re
import sys

LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def dead_links(root):
    found, documents = [], 0
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.endswith(".md"):
                continue
            documents += 1
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                links = LINK.findall(file.read())
            found += [f"{os.path.relpath(os.path.join(folder, name), root)}: {link}"
                      for link in links
                      if "://" not in link and not os.path.exists(os.path.join(folder, link))]
    return documents, found


def main():
    documents, found = dead_links(sys.argv[1])
    for link in found:
        print("dead link in", link)
    if documents == 0:
        print("no documents in", sys.argv[1])
    sys.exit(1 if found or documents == 0 else 0)


if __name__ == "__main__":
    main()
