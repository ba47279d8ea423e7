"""The model's own chains, thought by ponder."""
from __future__ import annotations

import json
import subprocess
import tempfile

import tasks
from export import export


def request(state, questions):
    """A record as ponder is asked it."""
    return {"state": state, "questions": {q.name: {"type": q.type, "instructions": q.instructions, "criteria": q.criteria} for q in questions}}


def own_chains(run, base, ponder, split, seed, start, count, threads=2):
    """Greedy chains of the model of `run` (at step `base`) for about `count` questions of a split, kept in RUN/chains-SPLIT-BASE.json:
    [{"prompt", "rest": ids, "chain": ids, "closed", "target": probabilities}]"""
    path = run / f"chains-{split}-{base}.json"
    if path.exists():
        return json.loads(path.read_text())
    records, n = [], 0
    for record in tasks.stream(split, seed, start):
        records.append(record)
        n += len(record[1])
        if n >= count:
            break
    with tempfile.TemporaryDirectory() as folder:
        export(run, folder)
        command = [ponder, "decide", "--model", folder, "--jsonl", "--trace", "--max-think", "128", "--nothink-threshold", "1", "--threads", str(threads), "--no-drafter"]
        lines = "\n".join(json.dumps(request(*r)) for r in records) + "\n"
        out = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    found = []
    for (_, questions), line in zip(records, out, strict=True):
        answers = json.loads(line)["questions"]
        for q in questions:
            a = answers[q.name]
            found.append({"prompt": a["prompt_ids"], "rest": a["remainder_ids"], "chain": a["chain"], "closed": a["closed"], "target": q.target()})
    path.write_text(json.dumps(found))
    return found
