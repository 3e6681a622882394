"""How the generators write: deterministic JSON beside each sample."""
import json
import os


def write_bytes(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def write_text(path, text):
    write_bytes(path, text.encode("utf-8"))


def write_json(path, document):
    """One line for each member of the document: small, and still readable in a difference."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            body = ",\n".join("  " + json.dumps(one, ensure_ascii=False) for one in value)
            lines.append(f" {json.dumps(key)}: [\n{body}]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
