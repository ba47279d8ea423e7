"""errors.py MODEL DATA.jsonl PONDER [--count N] [--source NAME]: chains that end in a wrong answer, with their questions.

How often that happens `ponder eval` says.
"""
from __future__ import annotations

import argparse
import json
import subprocess
from itertools import islice

from chains import think
from question import UNKNOWN, label_index


def wrong(records, traces, source):
    """(state, question, ids of its chain) of answers that differ from the label"""
    for r, trace in zip(records, traces):
        for name, q in r["questions"].items():
            if q["label"] is UNKNOWN or source not in (None, q["src"]):
                continue
            got = trace["questions"][name]
            probs = got["probs"]
            if max(range(len(probs)), key=probs.__getitem__) != label_index(q["type"], q["criteria"], q["label"]):
                yield r["state"], q, got["chain"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("data")
    p.add_argument("ponder")
    p.add_argument("--count", type=int, default=20)
    p.add_argument("--source", help="only questions of this source")
    p.add_argument("--records", type=int, help="only so many records from the beginning")
    a = p.parse_args()
    with open(a.data, encoding="utf-8") as f:
        records = [json.loads(line) for line in islice(f, a.records)]
    traces = think(a.ponder, a.model, [(r["state"], r["questions"]) for r in records], threads=2)
    shown = list(islice(wrong(records, traces, a.source), a.count))
    lines = "".join(json.dumps({"ids": chain}) + "\n" for _, _, chain in shown)
    texts = subprocess.run([a.ponder, "tokenize", "--model", a.model, "--decode"], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    for (state, q, _), text in zip(shown, texts):
        print(f"{json.dumps(state)}\n  {q['instructions']} {json.dumps(q['criteria'])}\n  label {q['label']}; {json.loads(text)['text']!r}\n")


if __name__ == "__main__":
    main()
