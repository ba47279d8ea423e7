"""Tokenizer and texts of the demo: trains the byte-level BPE, and spells prompts, chains and remainders as ponder does."""
from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|box_start|>", "<|box_end|>"]
PLAIN = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<think>", "</think>"]
STATE, ASK, OPT, OPT_END, DECIDE, THINK_END = "<|fim_prefix|>", "<|fim_middle|>", "<|box_start|>", "<|box_end|>", "<|fim_suffix|>", "</think>"
CHAT_TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n<think>\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""


# ---------------------------------------------------------------- texts
def sanitize(text):
    return re.sub(r"<\|([A-Za-z0-9_]+)\|>", "<\u00a6\\1\u00a6>", text)


def render(value, depth=0):
    """A JSON value as readable text."""
    if value is None:
        return ""
    if not isinstance(value, (list, dict)):
        return str(value)
    pad, lines = "  " * depth, []
    if isinstance(value, list):
        lines = [pad + "- " + render(x, depth + 1).lstrip() for x in value]
    else:
        for key, x in value.items():
            lines.append(f"{pad}{key}:\n{render(x, depth + 1)}" if isinstance(x, (list, dict)) else f"{pad}{key}: {render(x)}")
    return "\n".join(lines)


def label(name, note):
    return name if note in (None, "") else f"{name}: {render(note)}"


def options(q):
    """Options of a question (`type`, `criteria`) as they are shown."""
    if q["type"] == "choice":
        return [label(k, v) for k, v in q["criteria"].items()]
    if q["type"] == "noul":
        notes = q["criteria"] or {}
        return [label("no", notes.get("false")), label("yes", notes.get("true"))]
    return [render(x) for x in q["criteria"]]


def texts(state, q):
    """-> prompt, remainder without its </think>"""
    block = "".join(f"{OPT}{sanitize(o)}{OPT_END}\n" for o in options(q))
    user = f"{STATE}{sanitize(render(state))}\n{ASK}{sanitize(render(q['instructions']))}\n{block}".strip()
    return f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n<think>\n", f"\n\n{block}{DECIDE}"


class Coder:
    def __init__(self, path):
        from tokenizers import Tokenizer
        self.tok = Tokenizer.from_file(str(path))
        self.id = self.tok.token_to_id
        self.end, self.opt_end, self.newline = self.id(THINK_END), self.id(OPT_END), self.id("\u010a")
        self.size = self.tok.get_vocab_size()

    def ids(self, text):
        return self.tok.encode(text, add_special_tokens=False).ids

    def many(self, texts):
        return [e.ids for e in self.tok.encode_batch(texts, add_special_tokens=False)]


# ---------------------------------------------------------------- training of the tokenizer
def train(folder, size=2048, records=20000):
    """Writes tokenizer.json, tokenizer_config.json and chat_template.jinja."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    from tasks import EASY, stream

    def corpus():
        for state, questions in islice(stream("train", 1, EASY // 2), records):
            yield render(state)
            for q in questions:
                yield from (render(q.instructions), "\n".join(options(q.json())), q.chain)

    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"), level])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size - len(SPECIAL + PLAIN), initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                                          show_progress=False))
    model = json.loads(tok.to_str())["model"]
    vocab = model["vocab"]
    added = [{"id": len(vocab) + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": t in SPECIAL} for i, t in enumerate(SPECIAL + PLAIN)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    out = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "NFC"},
           "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
               {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}, byte_level]},
           "post_processor": byte_level, "decoder": byte_level,
           "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                     "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab,
                     "merges": [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]}}
    config = {"add_bos_token": False, "add_prefix_space": False,
              "added_tokens_decoder": {str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in added},
              "additional_special_tokens": SPECIAL[1:], "bos_token": None, "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>",
              "errors": "replace", "model_max_length": 262144, "pad_token": "<|endoftext|>", "split_special_tokens": False,
              "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")


# ---------------------------------------------------------------- examples
def example(coder, state, q):
    """One question as ids: prompt, chain with its close, remainder; and the target probabilities."""
    prompt, rest = texts(state, q.json())
    return coder.ids(prompt), coder.ids(q.chain + "\n" + THINK_END), coder.ids(rest), q.target(), q.src, q.label is None


def examples(coder, split, seed, start=0):
    """-> (position of the record, example) without end"""
    from tasks import make
    i = start
    while True:
        state, questions = make(split, seed, i)
        i += 1
        for q in questions:
            yield i, example(coder, state, q)


if __name__ == "__main__":
    import sys
    train(sys.argv[1])
