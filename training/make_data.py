"""make_data.py [--out FOLDER]: writes dev.jsonl and test.jsonl of the demo's tasks.

One record a line: {"state", "questions": {name: {type, instructions, criteria, label, src}}, "_meta": {"source"}}. A label
is an option's name (choice), true or false (noul), a level from 0 on (score), or null where the state does not say: then
even probabilities are right.
"""
import argparse
import json
from pathlib import Path

from tasks import stream

SIZES = {"dev": 800, "test": 2000}
SEED = 20


def records(split, count):
    seen = set()
    for state, questions in stream(split, SEED):
        # where several answers are equally right there is no label to count against
        questions = [q for q in questions if q.soft is None]
        line = json.dumps({"state": state, "questions": {q.name: q.json() for q in questions}, "_meta": {"source": questions[0].src if questions else ""}}, ensure_ascii=False)
        if questions and line not in seen:
            seen.add(line)
            yield line
        if len(seen) == count:
            return


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--out", default=Path(__file__).resolve().parent.parent / "data/demo", type=Path)
    out = p.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for split, count in SIZES.items():
        (out / f"{split}.jsonl").write_text("".join(line + "\n" for line in records(split, count)), encoding="utf-8")


if __name__ == "__main__":
    main()
