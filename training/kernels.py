"""Small operations of the model, each in one pass over memory: kernels.c through ctypes, as autograd functions.

`library` is None where there is no compiler; the model then uses PyTorch's own operations.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import torch

SOURCE = Path(__file__).with_name("kernels.c")
SEGMENT = 16


def compiled():
    """The shared library, built once for each version of the source."""
    path = Path(tempfile.gettempdir()) / f"ponder-training-{os.getuid()}" / f"{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.so"
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        try:
            subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-shared", "-fPIC", "-o", new, SOURCE, "-lmvec", "-lm"],
                           check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        os.replace(new, path)
    return ctypes.CDLL(str(path))


library = compiled()


def call(name, *args):
    """Tensors as pointers (contiguous float32), floats as float, whole numbers as size_t."""
    held = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else ctypes.c_float(a) if isinstance(a, float) else ctypes.c_size_t(a) for a in args]
    getattr(library, name)(*held)


class Rms(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, one, eps):
        x = x.contiguous()
        n = x.shape[-1]
        y, inv = torch.empty_like(x), x.new_empty(x.shape[:-1])
        call("rms_forward", x, w, one, eps, y, inv, x.numel() // n, n)
        ctx.save_for_backward(x, w, inv)
        ctx.one = one
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, inv = ctx.saved_tensors
        dy = dy.contiguous()
        n = x.shape[-1]
        dx, dw = torch.empty_like(x), torch.zeros_like(w)
        call("rms_backward", x, w, ctx.one, inv, dy, dx, dw, x.numel() // n, n)
        return dx, dw, None, None


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty_like(a)
        call("gate_forward", a, b, y, a.numel())
        ctx.save_for_backward(a, b)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensors
        dy = dy.contiguous()
        da, db = torch.empty_like(a), torch.empty_like(b)
        call("gate_backward", a, b, dy, da, db, a.numel())
        return da, db


class Conv(torch.autograd.Function):
    """x [B, T + 3, C], w [4, C] -> SiLU of the convolution [B, T, C]"""

    @staticmethod
    def forward(ctx, x, w):
        x, w = x.contiguous(), w.contiguous()
        B, T, C = x.shape[0], x.shape[1] - 3, x.shape[2]
        z, y = x.new_empty(B, T, C), x.new_empty(B, T, C)
        call("conv_forward", x, w, z, y, B, T, C)
        ctx.save_for_backward(x, w, z)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, z = ctx.saved_tensors
        dy = dy.contiguous()
        dx, dw = torch.zeros_like(x), torch.zeros_like(w)
        call("conv_backward", x, w, z, dy, dx, dw, *z.shape)
        return dx, dw


class Delta(torch.autograd.Function):
    """y [B, T, (2 keys + heads) 32], g and beta [B, T, heads], S [B, heads, 32, 32] -> o [B, T, heads, 32], S"""

    @staticmethod
    def forward(ctx, y, g, beta, S, keys):
        y, g, beta, S = y.contiguous(), g.contiguous(), beta.contiguous(), S.clone(memory_format=torch.contiguous_format)
        B, T, H = g.shape
        o, kept = y.new_empty(B, T, H, 32), y.new_empty(B, H, -(-T // SEGMENT), 32, 32)
        call("delta_forward", y, g, beta, S, o, kept, B, T, keys, H)
        ctx.save_for_backward(y, g, beta, kept)
        ctx.keys = keys
        return o, S

    @staticmethod
    def backward(ctx, do, dS):
        y, g, beta, kept = ctx.saved_tensors
        do, dS = do.contiguous(), dS.clone(memory_format=torch.contiguous_format)
        dy, dg, dbeta = torch.zeros_like(y), torch.empty_like(g), torch.empty_like(beta)
        call("delta_backward", y, g, beta, kept, do, dS, dy, dg, dbeta, *g.shape[:2], ctx.keys, g.shape[2])
        return dy, dg, dbeta, dS, None
