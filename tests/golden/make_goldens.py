#!/usr/bin/env python3
"""make_goldens.py FOLDER: writes the goldens of all formats into FOLDER/{atf,rtc,wtf,dial9}, again.

Without FOLDER, into data beside this program: what is committed. GOLDEN.md says when to run it.
"""
import os
import shutil
import sys

import make_atf
import make_dial9
import make_rtc
import make_wtf

MAKERS = {"atf": make_atf, "rtc": make_rtc, "wtf": make_wtf, "dial9": make_dial9}


def main(arguments):
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write(__doc__)
        return 2
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    folder = arguments[0] if arguments else own
    for name, maker in MAKERS.items():
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        maker.make(os.path.join(folder, name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
