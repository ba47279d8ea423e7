"""The hybrid decision model in PyTorch: gated delta net and gated attention, in the layout of the public checkpoints.

Parameters carry the names of the checkpoint. A sequence is run in pieces: `forward` takes a state and gives the next.
"""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

import kernels

CONFIG = {
    "architectures": ["HybridForCausalLM"], "model_type": "hybrid", "vocab_size": 2048, "hidden_size": 192, "intermediate_size": 640,
    "num_hidden_layers": 6, "layer_types": ["linear_attention", "full_attention"] * 3,
    "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 32, "attention_bias": False,
    "linear_num_key_heads": 3, "linear_num_value_heads": 6, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
    "tie_word_embeddings": True, "max_position_embeddings": 262144, "pad_token_id": None, "bos_token_id": None, "dtype": "bfloat16",
}
HEAD_DIM = 64
CHUNK = 16
BLOCK = 4


def fast(x):
    """Whether kernels.c takes this tensor."""
    return kernels.library is not None and x.dtype == torch.float32


def rms(x, w, one, eps):
    if fast(x):
        return kernels.Rms.apply(x, w, one, eps)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (one + w)


def gated(a, b):
    """SiLU(a) b"""
    return kernels.Gate.apply(a, b) if fast(a) else F.silu(a) * b


def rotate(x, cos, sin):
    """x [..., T, D]: turns the pairs (j, j + R/2) of the first R entries."""
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


class UnitLowerInverse(torch.autograd.Function):
    """(I + A)^-1 for strictly lower triangular A [..., C, C], C a power of two, by blocks: the inverse of
    [[P, 0], [B, Q]] is [[P', 0], [-Q' B P', Q']]."""

    @staticmethod
    def forward(ctx, a):
        c = a.shape[-1]
        x = torch.eye(c, dtype=a.dtype).expand_as(a).clone()
        s = 1
        while s < c:
            n = c // (2 * s)
            blocks = lambda m: m.unflatten(-1, (n, 2 * s)).unflatten(-3, (n, 2 * s)).diagonal(dim1=-4, dim2=-2).movedim(-1, -3)
            ab, xb = blocks(a), blocks(x)
            xb[..., s:, :s] = -(xb[..., s:, s:] @ ab[..., s:, :s] @ xb[..., :s, :s])
            s *= 2
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, d):
        x, = ctx.saved_tensors
        return -(x.mT @ d @ x.mT).tril(-1)


def delta_chunks(q, k, v, g, beta, chunk=CHUNK):
    """The part of the delta rule that all chunks do side by side. q, k [B, H, T, Dk] (normalised, q scaled),
    v [B, H, T, Dv], g and beta [B, H, T]; T is filled up to whole chunks."""
    pad = -q.shape[2] % chunk
    q, k, v = (F.pad(x, (0, 0, 0, pad)).unflatten(2, (-1, chunk)) for x in (q, k, v))
    g, beta = (F.pad(x, (0, pad)).unflatten(2, (-1, chunk)) for x in (g, beta))
    G = g.cumsum(-1)
    decay = (G[..., :, None] - G[..., None, :]).tril().exp().tril()
    kb = k * beta[..., None]
    grown = G.exp()[..., None]
    last = G[..., -1:]
    return ((kb @ k.mT) * decay).tril(-1), v * beta[..., None], kb * grown, (q @ k.mT) * decay, q * grown, k * (last - G).exp()[..., None], last.exp()[..., None]


def delta_loop(a, vb, kg, qk, qg, kd, last, S, T):
    """The chunks one after another; S [B, H, Dk, Dv] -> o [B, H, T, Dv], S."""
    uw = UnitLowerInverse.apply(a) @ torch.cat([vb, kg], -1)
    u, w = uw.split([vb.shape[-1], kg.shape[-1]], -1)
    out = []
    for u, w, qk, qg, kd, last in zip(*(x.unbind(2) for x in (u, w, qk, qg, kd, last))):
        new = u - w @ S
        out.append(qg @ S + qk @ new)
        S = S * last + kd.mT @ new
    return torch.cat(out, 2)[:, :, :T], S


def delta_rule(q, k, v, g, beta, S):
    """Gated delta rule -> o [B, H, T, Dv] and the state behind."""
    return delta_loop(*delta_chunks(q, k, v, g, beta), S, q.shape[2])


def delta_net(y, g, beta, S, keys):
    """Delta rule over the convolution's outputs. y [B, T, (2 keys + heads) D], g (log decay) and beta [B, T, heads],
    S [B, heads, D, D] -> o [B, T, heads, D], S."""
    if fast(y) and S.shape[-1] == 32:
        return kernels.Delta.apply(y, g, beta, S, keys)
    d, rep = S.shape[-1], S.shape[1] // keys
    q, k, v = (t.unflatten(2, (-1, d)).transpose(1, 2) for t in y.split([keys * d, keys * d, S.shape[1] * d], 2))
    unit = lambda t: (t * torch.rsqrt(t.square().sum(-1, keepdim=True) + 1e-6)).repeat_interleave(rep, 1)
    o, S = delta_rule(unit(q) * d ** -0.5, unit(k), v, g.mT, beta.mT, S)
    return o.transpose(1, 2), S


class Rms(nn.Module):
    """RMS norm whose weight is an offset from `one`, as in the checkpoint."""

    def __init__(self, n, eps, one=1.0):
        super().__init__()
        self.weight, self.eps, self.one = nn.Parameter(torch.full((n,), 1.0 - one)), eps, one

    def forward(self, x):
        return rms(x, self.weight, self.one, self.eps)


def linear(i, o, zero=False):
    m = nn.Linear(i, o, bias=False)
    nn.init.zeros_(m.weight) if zero else nn.init.normal_(m.weight, std=0.6 / math.sqrt(i))
    return m


class DeltaNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        E, self.hk, self.hv, self.d = c["hidden_size"], c["linear_num_key_heads"], c["linear_num_value_heads"], c["linear_key_head_dim"]
        self.kernel, eps = c["linear_conv_kernel_dim"], c["rms_norm_eps"]
        channels = (2 * self.hk + self.hv) * self.d
        self.in_proj_qkv, self.in_proj_z = linear(E, channels), linear(E, self.hv * self.d)
        self.in_proj_b, self.in_proj_a = linear(E, self.hv), linear(E, self.hv)
        self.conv1d = nn.Conv1d(channels, channels, self.kernel, groups=channels, bias=False)
        # "What stood behind this token before?" is answered from the start: queries and keys are the same projection, but most
        # keys are those of the token before the value.
        with torch.no_grad():
            n = self.hk * self.d
            self.in_proj_qkv.weight[n:2 * n] = self.in_proj_qkv.weight[:n]
            conv = self.conv1d.weight[:, 0].normal_(std=0.05)
            before = slice(n, n + max(1, 2 * self.hk // 3) * self.d)
            conv[:, -1] += 1.0
            conv[before, -1] -= 1.0
            conv[before, -2] += 1.0
        # decays spread from a few rows to hundreds
        self.A_log = nn.Parameter(torch.log(torch.linspace(0.5, 8.0, self.hv)))
        self.dt_bias = nn.Parameter(torch.log(torch.expm1(torch.linspace(0.002, 0.05, self.hv))))
        self.norm = Rms(self.d, eps, 0.0)
        self.out_proj = linear(self.hv * self.d, E, zero=True)

    def forward(self, h, state, cos, sin, keep):
        B, T, _ = h.shape
        past = state["conv"] if state else h.new_zeros(B, self.kernel - 1, self.conv1d.weight.shape[0])
        S = state["S"] if state else h.new_zeros(B, self.hv, self.d, self.d)
        x, w = torch.cat([past, self.in_proj_qkv(h)], 1), self.conv1d.weight[:, 0].mT
        y = kernels.Conv.apply(x, w) if fast(x) and self.kernel == 4 else F.silu(sum(x[:, j:j + T] * w[j] for j in range(self.kernel)))
        beta = torch.sigmoid(self.in_proj_b(h))
        g = -self.A_log.exp() * F.softplus(self.in_proj_a(h) + self.dt_bias)
        o, S = delta_net(y, g, beta, S, self.hk)
        new = {"conv": x[:, T:], "S": S}
        if keep:        # what mask rows of a drafter attend to
            _, k, v = (t.unflatten(2, (-1, self.d)).transpose(1, 2) for t in y.split([self.hk * self.d, self.hk * self.d, self.hv * self.d], 2))
            new |= {"k": rotate(k.repeat_interleave(self.hv // self.hk, 1), cos, sin), "v": v}
        return self.finish(h, o), new

    def finish(self, h, o):
        """o [B, T, Hv, D] -> gated norm, output projection"""
        return self.out_proj(gated(self.in_proj_z(h), self.norm(o).flatten(2)))


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        E, self.heads, self.kv, self.d, eps = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], c["rms_norm_eps"]
        self.q_proj, self.k_proj, self.v_proj = linear(E, 2 * self.heads * self.d), linear(E, self.kv * self.d), linear(E, self.kv * self.d)
        self.o_proj = linear(self.heads * self.d, E, zero=True)
        self.q_norm, self.k_norm = Rms(self.d, eps), Rms(self.d, eps)
        with torch.no_grad():       # sharp enough from the start to look up one row among many
            self.q_norm.weight.fill_(0.5)
            self.k_norm.weight.fill_(0.5)

    def inputs(self, q, k, v, cos, sin):
        """Projections [B, T, ...] -> rotated q, k, v [B, heads, T, D] and the gate"""
        q, gate = q.unflatten(-1, (self.heads, 2, self.d)).unbind(-2)
        k, v = (t.unflatten(-1, (self.kv, self.d)).transpose(1, 2) for t in (k, v))
        return rotate(self.q_norm(q.transpose(1, 2)), cos, sin), rotate(self.k_norm(k), cos, sin), v, gate.flatten(2)

    def forward(self, h, state, cos, sin, keep):
        q, k, v, gate = self.inputs(self.q_proj(h), self.k_proj(h), self.v_proj(h), cos, sin)
        if state:
            k, v = torch.cat([state["k"], k], 2), torch.cat([state["v"], v], 2)
        T, N = q.shape[2], k.shape[2]
        seen = torch.ones(T, N, dtype=torch.bool).tril(N - T)
        return self.finish(attend(q, k, v, seen), gate), {"k": k, "v": v}

    def finish(self, o, gate):
        return self.o_proj(o.transpose(1, 2).flatten(2) * torch.sigmoid(gate))


def attend(q, k, v, seen):
    """q [B, H, T, D], k and v [B, G, N, D], seen [.., T, N] -> [B, H, T, D]"""
    B, H, T, D = q.shape
    G = k.shape[1]
    score = (q.reshape(B, G, H // G * T, D) @ k.mT).reshape(B, H, T, -1) * D ** -0.5
    p = score.masked_fill(~seen, -torch.inf).softmax(-1)
    return (p.reshape(B, G, H // G * T, -1) @ v).reshape(B, H, T, -1)


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        E, M = c["hidden_size"], c["intermediate_size"]
        self.gate_proj, self.up_proj, self.down_proj = linear(E, M), linear(E, M), linear(M, E, zero=True)

    def forward(self, h):
        return self.down_proj(gated(self.gate_proj(h), self.up_proj(h)))


class Layer(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        self.input_layernorm = Rms(c["hidden_size"], c["rms_norm_eps"])
        self.post_attention_layernorm = Rms(c["hidden_size"], c["rms_norm_eps"])
        if kind == "linear_attention":
            self.linear_attn = DeltaNet(c)
        else:
            self.self_attn = Attention(c)
        self.mlp = Mlp(c)

    @property
    def mixer(self):
        return self.linear_attn if hasattr(self, "linear_attn") else self.self_attn

    def forward(self, x, state, cos, sin, keep):
        y, new = self.mixer(self.input_layernorm(x), state, cos, sin, keep)
        x = x + y
        return x + self.mlp(self.post_attention_layernorm(x)), new


class Backbone(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        nn.init.normal_(self.embed_tokens.weight, std=0.05)
        self.layers = nn.ModuleList(Layer(c, kind) for kind in c["layer_types"])
        self.norm = Rms(c["hidden_size"], c["rms_norm_eps"])


class Hybrid(nn.Module):
    def __init__(self, config=CONFIG):
        super().__init__()
        self.c = config
        self.model = Backbone(config)
        self.head = nn.ModuleDict({"q": nn.Linear(config["hidden_size"], HEAD_DIM), "k": nn.Linear(config["hidden_size"], HEAD_DIM)})
        R = int(config["head_dim"] * config["partial_rotary_factor"])
        self.register_buffer("freq", config["rope_theta"] ** (-torch.arange(0, R, 2).double() / R), persistent=False)

    def tables(self, pos):
        angle = pos.double()[..., None] * self.freq
        return angle.cos().to(self.model.norm.weight.dtype), angle.sin().to(self.model.norm.weight.dtype)

    def forward(self, ids, state=None, keep=False):
        """ids [B, T] -> hidden states [B, T, E] behind the final norm, and the state behind them.
        keep: also what mask rows see of delta layers (of these rows alone)."""
        at = state["n"] if state else 0
        cos, sin = self.tables(torch.arange(at, at + ids.shape[1]))
        x, layers = self.model.embed_tokens(ids), []
        for i, layer in enumerate(self.model.layers):
            x, new = layer(x, state["layers"][i] if state else None, cos, sin, keep)
            layers.append(new)
        return self.model.norm(x), {"n": at + ids.shape[1], "layers": layers}

    def logits(self, hidden):
        return hidden @ self.model.embed_tokens.weight.T

    def scores(self, options, decide):
        """options [B, n, E], decide [B, E] -> [B, n]"""
        return (self.head["k"](options) @ self.head["q"](decide)[..., None])[..., 0] * HEAD_DIM ** -0.5


def spread(state, copies):
    """The state with every row `copies` times."""
    return {"n": state["n"], "layers": [{k: x.repeat_interleave(copies, 0) for k, x in s.items()} for s in state["layers"]]}
