"""evaluate.py MODEL DATA.jsonl PONDER [--limit N] [--errors N]: what a model folder answers through ponder, direct and after
thinking: accuracy by source, sure answers to questions the state does not answer, expected calibration error, tokens,
accepted rows of draft cycles."""
from __future__ import annotations

import argparse
import json
import subprocess
from collections import Counter, defaultdict
from itertools import islice

from chains import think


def ece(pairs, bins=10):
    """Mean gap between the top probability and how often it was right, over bins of equal width. pairs: (p, right)"""
    by = defaultdict(list)
    for p, right in pairs:
        by[min(int(p * bins), bins - 1)].append((p, right))
    return sum(abs(sum(p for p, _ in b) - sum(r for _, r in b)) for b in by.values()) / max(1, len(pairs))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("data")
    p.add_argument("ponder")
    p.add_argument("--limit", type=int)
    p.add_argument("--errors", type=int, default=0)
    p.add_argument("--threads", default="1")
    p.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of ponder decide, to the end of the line")
    a = p.parse_args()
    with open(a.data, encoding="utf-8") as f:
        records = [json.loads(line) for line in islice(f, a.limit)]
    traces = think(a.ponder, a.model, [(r["state"], r["questions"]) for r in records], *a.more, threads=a.threads)
    right, top, sure, total, lengths, closed, accepted = defaultdict(Counter), defaultdict(list), Counter(), Counter(), [], 0, Counter()
    chains, shown = [], 0
    for r, t in zip(records, traces):
        for k, n in t["counters"].get("accepted", {}).items():
            accepted[int(k)] += n
        for name, q in r["questions"].items():
            got = t["questions"][name]
            lengths.append(len(got["chain"]))
            closed += got["closed"]
            options = list(q["criteria"]) if q["type"] == "choice" else [False, True] if q["type"] == "noul" else list(range(len(q["criteria"])))
            src = q["src"] if q["label"] is not None else "unknown"
            total[src] += 1
            for mode, probs in (("direct", got["nothink_probs"]), ("thought", got["probs"])):
                best = max(range(len(probs)), key=probs.__getitem__)
                if q["label"] is None:
                    sure[mode] += probs[best] >= 0.9
                    continue
                ok = options[best] == q["label"]
                right[mode][src] += ok
                top[mode].append((probs[best], ok))
                if mode == "thought" and not ok and shown < a.errors:
                    chains.append((r["state"], q, got["chain"]))
                    shown += 1
    answered = sum(n for s, n in total.items() if s != "unknown")
    for mode in ("direct", "thought"):
        print(f"{mode}: accuracy {sum(right[mode].values()) / answered:.4f} of {answered}, ECE {ece(top[mode]):.4f}, "
              f"sure of the unknown {sure[mode]} of {total['unknown']} ({sure[mode] / max(1, total['unknown']):.3f})")
    print("by source (direct, thought): " + ", ".join(f"{s} {right['direct'][s] / n:.2f} {right['thought'][s] / n:.2f} ({n})" for s, n in sorted(total.items()) if s != "unknown"))
    print(f"chains: {sum(lengths) / len(lengths):.1f} tokens, closed {closed / len(lengths):.4f}", end="")
    rows = sum(accepted.values())
    print(f", accepted rows a cycle {sum(k * n for k, n in accepted.items()) / rows:.3f}" if rows else "")
    if chains:
        lines = "".join(json.dumps({"ids": c}) + "\n" for _, _, c in chains)
        texts = subprocess.run([a.ponder, "tokenize", "--model", a.model, "--decode"], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        for (state, q, _), text in zip(chains, texts):
            print(f"\n{json.dumps(state)}\n  {q['instructions']} {json.dumps(q['criteria'])}\n  label {q['label']}; {json.loads(text)['text']!r}")


if __name__ == "__main__":
    main()
