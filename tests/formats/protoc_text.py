"""Protocol Buffers through Debian's protoc and a schema that only tests have: what our writers made by
hand, read by a program that is not ours. A field that the schema does not have is an error."""

import os
import re
import subprocess


def decode(data, schema, message):
    """The message as nested dictionaries of lists: each field has all its values."""
    text = subprocess.run(
        ["protoc", f"--proto_path={os.path.dirname(schema)}", f"--decode={message}",
         os.path.basename(schema)],
        input=data, capture_output=True, check=True).stdout.decode()
    root = {}
    stack = [root]
    for line in text.split("\n"):
        line = line.strip()
        if not line:
            continue
        if line == "}":
            stack.pop()
            continue
        match = re.fullmatch(r"(\w+)(: (.*)| \{)", line)
        if match is None or match.group(1).isdigit():
            raise ValueError(f"not in the schema: {line}")
        values = stack[-1].setdefault(match.group(1), [])
        if match.group(3) is None:
            values.append({})
            stack.append(values[-1])
        else:
            values.append(value_of(match.group(3)))
    return root


def unescaped(match):
    if match.group(1):
        return chr(int(match.group(1), 8))
    return {"n": "\n", "t": "\t", "r": "\r"}.get(match.group(2), match.group(2))


def value_of(text):
    if text.startswith('"'):
        # Bytes that are not ASCII are octal.
        return re.sub(r"\\([0-7]{3})|\\(.)", unescaped, text[1:-1]).encode("latin-1").decode()
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return {"true": True, "false": False}.get(text, text)


def one(message, field, default=None):
    return message[field][0] if field in message else default
