"""Writes the *.pt files of this folder with PyTorch 1.13 (Debian's python3-torch) and Python's own zipfile and pickle,
and torch.json: the values the good ones hold, and for each bad one what its refusal must name.

    python3 make.py FOLDER
"""
import collections
import json
import os
import pathlib
import pickle
import sys
import zipfile

import torch
from torch import nn

out = pathlib.Path(sys.argv[1])
torch.manual_seed(7)
good, bad = {}, {}


def keep(name, tensors, dtype, **options):
    torch.save(tensors, out / name, **options)
    good[name] = {"dtype": dtype,
                  "tensors": {k: {"shape": list(v.shape), "values": v.detach().double().flatten().tolist()}
                              for k, v in tensors.items()}}


def refuse(name, value, names, **options):
    torch.save(value, out / name, **options)
    bad[name] = names


def entries(name):
    with zipfile.ZipFile(out / name) as archive:
        return {e: archive.read(e) for e in archive.namelist()}


def rewrite(name, contents, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(out / name, "w", compression) as archive:
        for entry, data in contents.items():
            archive.writestr(zipfile.ZipInfo(entry), data, compression)


class Head(nn.Module):
    def __init__(self, hidden, size):
        super().__init__()
        self.q = nn.Linear(hidden, size)
        self.k = nn.Linear(hidden, size)


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/ponder-pickle-was-executed",)


class EvilDict(collections.OrderedDict):
    pass


keep("module.pt", Head(12, 5).state_dict(), "f32")
for protocol in (3, 4, 5):
    keep(f"module_p{protocol}.pt", Head(6, 3).state_dict(), "f32", pickle_protocol=protocol)
keep("half.pt", Head(8, 4).half().state_dict(), "f16")
keep("bfloat16.pt", Head(8, 4).bfloat16().state_dict(), "bf16")
keep("double.pt", Head(4, 3).double().state_dict(), "f64")
keep("parameters.pt", {k: nn.Parameter(torch.randn(3, 2)) for k in ("q.weight", "k.weight")}, "f32")
keep("named_parameters.pt", dict(Head(4, 2).named_parameters()), "f32", pickle_protocol=4)
block = torch.randn(4, 6)
keep("views.pt", collections.OrderedDict(rows=block[1:3], all=block, last=block[3], scalar=torch.tensor(2.5),
                                         none=torch.zeros(0, 6), thin=torch.randn(5, 1, 3),
                                         column=block[:, 2:3].contiguous(), again=block), "f32")
keep("empty.pt", {}, "f32")

# Entries that later versions of PyTorch add.
later = {"module/" + k: v for k, v in {"byteorder": b"little", ".format_version": b"1", ".storage_alignment": b"64",
                                      ".data/serialization_id": b"0636457737946401051300000009273273824231"}.items()}
rewrite("module_later.pt", entries("module.pt") | later)
good["module_later.pt"] = good["module.pt"]
rewrite("bad_big_endian.pt", entries("module.pt") | {"module/byteorder": b"big"})
bad["bad_big_endian.pt"] = ["module/byteorder", "big"]
rewrite("bad_deflated.pt", entries("module.pt"), zipfile.ZIP_DEFLATED)
bad["bad_deflated.pt"] = ["module/data", "compressed"]
some = entries("module.pt")
del some["module/data/2"]
rewrite("bad_no_storage.pt", some)
bad["bad_no_storage.pt"] = ["module/data/2"]
rewrite("bad_short_storage.pt", entries("module.pt") | {"module/data/1": bytes(16)})
bad["bad_short_storage.pt"] = ["storage '1'", "16 bytes", "5 values"]
rewrite("bad_no_pickle.pt", {"module/version": b"3\n"})
bad["bad_no_pickle.pt"] = ["data.pkl"]
rewrite("bad_two_pickles.pt", entries("module.pt") | {"other/data.pkl": b"\x80\x02}."})
bad["bad_two_pickles.pt"] = ["module/data.pkl", "other/data.pkl"]

refuse("bad_transposed.pt", {"fine": torch.randn(2, 2), "w": torch.randn(3, 4).t()}, ["'w'", "[4, 3]", "contiguous"])
refuse("bad_column.pt", {"w": block[:, 1]}, ["'w'", "contiguous"])
refuse("bad_expanded.pt", {"w": torch.randn(1).expand(1000)}, ["'w'", "[1000]", "contiguous"])
refuse("bad_long.pt", {"steps": torch.arange(4)}, ["torch.LongStorage"])
refuse("bad_complex.pt", {"w": torch.complex(torch.randn(2), torch.randn(2))}, ["torch.ComplexFloatStorage"])
refuse("bad_sparse.pt", {"w": torch.eye(3).to_sparse()}, ["torch._utils._rebuild_sparse_tensor"])
refuse("bad_nested.pt", {"state_dict": {"w": torch.randn(2)}}, ["'state_dict'", "a dict"])
refuse("bad_list.pt", [torch.randn(2)], ["EMPTY_LIST"])
refuse("bad_tensor.pt", torch.randn(2), ["a tensor", "flat dict"])
refuse("bad_number.pt", {"w": torch.randn(2), "epoch": 3}, ["'epoch'", "an integer"])
refuse("bad_key.pt", {3: torch.randn(2)}, ["an integer as a key"])
refuse("bad_module.pt", nn.Linear(2, 2), ["torch.nn.modules.linear.Linear"])
refuse("bad_legacy.pt", {"w": torch.randn(2)}, ["zip"], _use_new_zipfile_serialization=False)
refuse("bad_attribute.pt", EvilDict(w=torch.randn(2)), ["__main__.EvilDict"])
extra = Head(2, 2).state_dict()
extra.note = "x"
refuse("bad_state.pt", extra, ["attributes of an OrderedDict"])
for protocol in (2, 4):
    refuse(f"bad_evil_value_p{protocol}.pt", {"w": torch.randn(2), "x": Evil()}, ["posix.system", "nothing was executed"],
           pickle_protocol=protocol)
rewrite("bad_evil_root.pt", {"archive/data.pkl": pickle.dumps(Evil(), 2), "archive/version": b"3\n"})
bad["bad_evil_root.pt"] = ["archive/data.pkl", "posix.system"]
rewrite("bad_evil_inst.pt", {"archive/data.pkl": b"\x80\x02(X\x04\x00\x00\x00trueios\nsystem\n."})
bad["bad_evil_inst.pt"] = ["archive/data.pkl", "INST"]
rewrite("bad_evil_eval.pt", {"archive/data.pkl": pickle.dumps(collections.OrderedDict(), 4)[:-1] +
                             b"\x8c\x08builtins\x8c\x04eval\x93\x8c\x0211\x85R0."})
bad["bad_evil_eval.pt"] = ["builtins.eval"]
json.dump({"good": good, "bad": bad}, open(out / "torch.json", "w"), separators=(",", ":"))
