"""Makes the expected values of the tokenizer tests with independent programs.

    python3 -m venv v && v/bin/pip install tokenizers==0.23.3
    v/bin/python make_fixtures.py        # Python 3.11 (Unicode 14 tables)

hf-cases.json   ids from Hugging Face's `tokenizers` for random texts, over tokenizer files that are derived
                from ../hybrid/tiny-a/tokenizer.json by the changes listed in the file
hf-long.json    the same for a megabyte of one character or line end, as [cycle, times] blocks
utf8.json       random bytes (hex) and what bytes.decode("utf-8", "replace") makes of them
normalize.json  random texts and their four normal forms from unicodedata

`tokenizers` normalises with an older Unicode than the tests' library: characters on whose decomposition or
combining class it and Unicode 14 disagree are left out.
"""
import gzip
import json
import random
import tempfile
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer, normalizers

HERE = Path(__file__).parent
R = random.Random(20240607)

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LEAD, SHORT = r"[^\r\n\p{L}\p{N}]?", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
CASED = f"{LEAD}{UPPER}*{LOWER}+|{LEAD}{UPPER}+{LOWER}*" + r"|\p{N}" + TAIL
O200K = f"{LEAD}{UPPER}*{LOWER}+{SHORT}|{LEAD}{UPPER}+{LOWER}*{SHORT}" + r"|\p{N}{1,3}" + TAIL


def split(pattern, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": "Isolated", "invert": False}


def byte_level(use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def steps(*parts):
    return {"type": "Sequence", "pretokenizers": [*parts, byte_level()]}


def token(i, content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False):
    return dict(id=i, content=content, single_word=single_word, lstrip=lstrip, rstrip=rstrip, normalized=normalized,
                special=special)


BASE = json.loads((HERE / "../hybrid/tiny-a/tokenizer.json").read_text())
FREE = max(t["id"] for t in BASE["added_tokens"]) + 1
FLAGS = [token(FREE, "AB", lstrip=True), token(FREE + 1, "CD", rstrip=True, special=True),
         token(FREE + 2, "EF", single_word=True), token(FREE + 3, "é!", normalized=True),
         token(FREE + 4, "GH", lstrip=True, rstrip=True, single_word=True), token(FREE + 5, "\u212b", normalized=True),
         token(FREE + 6, "ABC"), token(FREE + 7, " x "), token(FREE + 8, "1\u03011", normalized=True)]

# The changes to the base file; "added" is appended, all else replaces.
VARIANTS = {
    "qwen35": {},
    "qwen2": {"pre_tokenizer": steps(split(QWEN2))},
    "llama3": {"pre_tokenizer": steps(split(LLAMA3))},
    "gpt2": {"pre_tokenizer": byte_level(True), "normalizer": None},
    "cased": {"pre_tokenizer": steps(split(CASED))},
    "o200k": {"pre_tokenizer": steps(split(O200K))},
    "digits": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                                                      byte_level(True)]}},
    "digit_runs": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": False}, byte_level(True)]}},
    "one_piece": {"pre_tokenizer": byte_level()},
    "nfd": {"normalizer": {"type": "NFD"}},
    "nfkc": {"normalizer": {"type": "NFKC"}},
    "nfkd": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}]}},
    "flags": {"added": FLAGS},
    "several": {"pre_tokenizer": steps(split(r"\p{N}{1,3}"), split("the", "String"),
                                       split(r"[^\r\n]?\p{L}+|\s+(?!\S)|\s"))},
    "other_1": {"pre_tokenizer": steps(split(r"\p{Han}+|[a-z&-]+|\d+\.?\d*|[^\S\n]+|(?<=a)b+?c|."))},
    "other_2": {"pre_tokenizer": steps(split(r"[!-/:-~]?[A-Za-z\p{M}]+|[^\p{L}\s]{2,3}|\s+$|\s"))},
    "other_3": {"pre_tokenizer": steps(split(r"(\p{Lu}\p{Ll}*)+|\p{P}+(?=\s)|\r?\n"))},
    "other_4": {"pre_tokenizer": steps(split(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}"
                                             r"\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"))},
}


def variant(change):
    spec = json.loads(json.dumps(BASE))
    for key, value in change.items():
        if key == "added":
            spec["added_tokens"] += value
        else:
            spec[key] = value
    return Tokenizer.from_str(json.dumps(spec))


POOL = ["'s", "'S", "'\u017f", "'LL", "'re", "'Ve", "'d", "'x", " ", "  ", "\n", "\r\n", "\n\n", "\t", "\u00a0", "\u3000",
        "\u0085", "\u200b", "\ufeff", "\u1680", "\u180e", "\x1c", "\x0b", "\u2028", "the", "The", "THE", "iPhone",
        "word", "a", "Z", "éa", "e\u0301", "\u0301", "\u0323\u0301", "\u0308", "中文", "日本", "가", "\u1100\u1161\u11a8",
        "\uac00\u11a8", "नमस्ते", "ไทย", "عَرَبي", "\u0653", "ǅ", "ʰ", "ª", "1", "22", "٣", "½", "Ⅷ", "²", "😀",
        "👩\u200d👩\u200d👧", "🇫🇷", "!", "...", "-/", "/\n/", "<|im_end|>", "<think>", "</think>", "<|im_", "|>", "_", "-",
        "'", "\"", "Ω", "\u2126", "\u212b", "\u00c5", "ﬁ", "\u1e9b\u0323", "\u0344", "\u0f73", "\u0958", "\u2adc",
        "\U0001d15e", "\u09c7\u09be", "\u0dd9\u0dcf\u0dca", "AB", "ABC", "CD", "EF", "GH", "é!", "e\u0301!", "A\u030a",
        " x ", "1\u03011", "a-z&b", "abbbc", "3.14", "\x00", "\uffff", "\U0010ffff", "\ue000", "Việt", "Vie\u0323\u0302t"]


def disagreeing():
    forms = {"NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD()}
    out = set()
    for c in range(0x300, 0x110000):
        if 0xD800 <= c < 0xE000:
            continue
        ch = chr(c)
        probes = [ch, *("x" + ch + o for o in "\u0301\u0334\u0345\u0323"), *("x" + o + ch for o in "\u0301\u0334\u0345\u0323")]
        if any(f.normalize_str(p) != unicodedata.normalize(n, p) for n, f in forms.items() for p in probes):
            out.add(c)
    return out


def random_texts(count, characters, marks):
    out = []
    for i in range(count):
        n = R.randint(1, 14)
        if i % 8 == 0:
            out.append("".join(chr(R.choice(marks if R.random() < .6 else characters)) for _ in range(n)))
        elif i % 8 == 1:
            out.append("".join(chr(R.choice(characters)) for _ in range(n)))
        else:
            out.append("".join(R.choice(POOL) + (chr(R.choice(characters)) if R.random() < .1 else "") for _ in range(n)))
    return out


def packed(ids):
    """[cycle, times] blocks"""
    blocks, at = [], 0
    while at < len(ids):
        best, best_times = [ids[at]], 1
        for length in range(1, 33):
            cycle, times, end = ids[at:at + length], 0, at
            while ids[end:end + length] == cycle and len(cycle) == length:
                times, end = times + 1, end + length
            if times > 1 and times * length > best_times * len(best):
                best, best_times = cycle, times
        blocks.append([best, best_times])
        at += len(best) * best_times
    assert len(blocks) < 50, blocks[:50]
    return blocks


def write(name, value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    (HERE / name).write_text(text.replace("},{", "},\n{") + "\n")


def main():
    bad = disagreeing()
    assigned = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c not in bad
                and unicodedata.category(chr(c)) not in ("Cn", "Co")]
    marks = [c for c in assigned if unicodedata.combining(chr(c))]
    texts = random_texts(160, assigned, marks)
    tokenizers = {name: variant(change) for name, change in VARIANTS.items()}
    with tempfile.NamedTemporaryFile("wb", suffix=".json") as f:
        f.write(gzip.decompress((HERE / "qwen3.json.gz").read_bytes()))
        f.flush()
        qwen3 = Tokenizer.from_file(f.name)
    every = {**tokenizers, "qwen3": qwen3}
    cases = [{"text": t, "ids": {n: k.encode(t, add_special_tokens=False).ids for n, k in every.items()}} for t in texts]
    write("hf-cases.json", {"variants": VARIANTS, "cases": cases})

    long = []
    for unit in [" ", "\n", "\r\n", "Z", "1", "!", "\u00e9", "\u0301", "中", "😀", "\u0323\u0301"]:
        text = unit * ((1 << 20) // len(unit.encode()))
        for name in ("qwen3", "qwen35"):
            ids = every[name].encode(text, add_special_tokens=False).ids
            long.append({"unit": unit, "tokenizer": name, "blocks": packed(ids)})
    write("hf-long.json", long)

    pieces = [b"a", b"\xc3", b"\xa9", b"\xe4", b"\xb8", b"\xad", b"\xf0", b"\x9f", b"\x98", b"\x80", b"\xc0", b"\xff",
              b"\xed\xa0\x80", b"\xf4\x90", b"\xe0\x80", b"\xf8", "é".encode(), "😀".encode(), b"\xf0\x80", b"\xc1\xbf"]
    raw = [b"".join(R.choice(pieces) for _ in range(R.randint(0, 9))) for _ in range(400)]
    raw += [bytes(R.randrange(128, 256) for _ in range(R.randint(1, 8))) for _ in range(200)]
    write("utf8.json", [[b.hex(), b.decode("utf-8", "replace")] for b in raw])

    stable = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]
    stable_marks = [c for c in stable if unicodedata.combining(chr(c))]
    changing = [c for c in stable if any(unicodedata.normalize(f, chr(c)) != chr(c) for f in ("NFC", "NFD", "NFKD"))
                and not 0xAC00 <= c <= 0xD7A3]
    some = random_texts(150, stable, stable_marks) + random_texts(150, changing, stable_marks)
    write("normalize.json", [[t, *(unicodedata.normalize(f, t) for f in ("NFC", "NFD", "NFKC", "NFKD"))] for t in some])


main()
