"""The model's own chains, thought by ponder."""
from __future__ import annotations

import json
import subprocess
import tempfile

import tasks
from export import export

ASKED = ("type", "instructions", "criteria")


def think(ponder, folder, records, *more, budget=128, threads=1):
    """Traces of ponder's answers, one a record, every question thought about. records: [(state, {name: question as JSON} or [Question])];
    more: further options of `ponder decide`."""
    by_name = lambda questions: questions if isinstance(questions, dict) else {q.name: q.json() for q in questions}
    lines = "".join(json.dumps({"state": state, "questions": {n: {k: q[k] for k in ASKED} for n, q in by_name(questions).items()}}) + "\n" for state, questions in records)
    command = [ponder, "decide", "--model", folder, "--jsonl", "--trace", "--max-think", str(budget), "--nothink-threshold", "1", "--threads", str(threads), *more]
    out = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(out) == len(records), (len(out), len(records))
    return [json.loads(line) for line in out]


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
        traces = think(ponder, folder, records, "--no-drafter", threads=threads)
    found = []
    for (_, questions), trace in zip(records, traces):
        for q in questions:
            a = trace["questions"][q.name]
            found.append({"prompt": a["prompt_ids"], "rest": a["remainder_ids"], "chain": a["chain"], "closed": a["closed"], "target": q.target()})
    path.write_text(json.dumps(found))
    return found
