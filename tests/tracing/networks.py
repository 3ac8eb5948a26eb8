"""Small networks in plain PyTorch, of every kind that tracing claims to read, with example arguments."""
# ruff: noqa: E501 - one line for one network

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Network = Callable[[], tuple[nn.Module, tuple[Any, ...]]]


class Attention(nn.Module):
    """Self-attention with fused queries, keys and values."""

    def __init__(self, width: int, heads: int, *, causal: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal, self.dropout = heads, causal, dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, w = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        p = self.dropout if self.training else 0.0
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=p)
        return self.out(y.transpose(1, 2).reshape(b, s, w))


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int = 256, heads: int = 4, *, causal: bool = True) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.one(x))
        return x + self.down(functional.gelu(self.up(self.two(x))))


class Decoder(nn.Module):
    """Embedding, layers, tied head."""

    def __init__(self, vocab: int = 1000, width: int = 256, layers: int = 4, *, tied: bool = True) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(vocab, width), nn.Embedding(512, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Gated(nn.Module):
    """RMS norm and a gated feed-forward, as in Llama."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up, self.down = (
            nn.Linear(a, b, bias=False) for a, b in ((width, 768), (width, 768), (768, width))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Residual(nn.Module):
    """Two convolutions with batch norms and a way around them."""

    def __init__(self, channels: int, stride: int = 1) -> None:
        super().__init__()
        wide = channels * stride
        self.a = nn.Conv2d(channels, wide, 3, stride, 1, bias=False)
        self.b = nn.Conv2d(wide, wide, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(wide), nn.BatchNorm2d(wide)
        self.way = nn.Conv2d(channels, wide, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.na(self.a(x)))
        return functional.relu(self.nb(self.b(y)) + self.way(x))


class Unet(nn.Module):
    """Down, up by a transposed convolution, and a connection across."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, 1)
        self.norm = nn.GroupNorm(8, 64)
        self.up, self.last = nn.ConvTranspose2d(64, 32, 2, 2), nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = functional.silu(self.a(x))
        b = functional.silu(self.norm(self.b(a)))
        return self.last(torch.cat([a, self.up(b)], 1))


class Recommender(nn.Module):
    """Tables of embeddings, dot products, a stack of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(5000, 64, mode="sum") for _ in range(6))
        self.below = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(64 + 21, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        x = self.below(dense)
        all_ = torch.stack([x, *(table(ids[:, i]) for i, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(all_, all_.transpose(1, 2))
        i, j = torch.tril_indices(7, 7, -1)
        return torch.sigmoid(self.above(torch.cat([x, pairs[:, i, j]], 1)))


class Cross(nn.Module):
    """Attention to a context of another length, with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(256, 256), nn.Linear(128, 512), nn.Linear(256, 256)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        b, s, _ = x.shape
        k, v = self.kv(context).view(b, -1, 2, 4, 64).permute(2, 0, 3, 1, 4)
        mask = torch.arange(context.shape[1], device=x.device) < 60
        y = functional.scaled_dot_product_attention(
            self.q(x).view(b, s, 4, 64).transpose(1, 2), k, v, attn_mask=mask.expand(b, 1, s, -1)
        )
        return self.out(y.transpose(1, 2).reshape(b, s, 256))


class Checkpointed(nn.Module):
    """Layers whose activations are computed again."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(128, 2) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch.utils.checkpoint import checkpoint

        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
        return x


class Spectral(nn.Module):
    """Mixing by Fourier transforms."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(128, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(torch.fft.fft(x, dim=1).real + x)


class Scanned(nn.Module):
    """A sum over time with gates."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(128, 256), nn.Linear(128, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = self.a(x).chunk(2, -1)
        return self.b(torch.cumsum(value * torch.sigmoid(gate), 1) * x)


class Routed(nn.Module):
    """Experts whose rows are gathered and scattered."""

    def __init__(self, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(128, experts)
        self.up, self.down = (
            nn.Parameter(torch.randn(experts, 128, 256)),
            nn.Parameter(torch.randn(experts, 256, 128)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, chosen = self.router(x).softmax(-1).topk(64, dim=0)
        rows = x[chosen.T]
        y = torch.einsum("eth,ehd->etd", functional.relu(torch.einsum("eth,ehd->etd", rows, self.up)), self.down)
        return torch.zeros_like(x).index_add(0, chosen.T.reshape(-1), (y * weight.T[..., None]).reshape(-1, 128))


class Memory(nn.Module):
    """A recurrent network's last states."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn, self.head = kind(64, 128, 2, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0])


def _mlp(*widths: int) -> nn.Module:
    return nn.Sequential(*(m for a, b in pairwise(widths) for m in (nn.Linear(a, b), nn.ReLU())))


def _images(n: int = 8, size: int = 32) -> tuple[torch.Tensor]:
    return (torch.randn(n, 3, size, size),)


def _tokens(n: int = 4, s: int = 128, w: int = 256) -> tuple[torch.Tensor]:
    return (torch.randn(n, s, w),)


NETWORKS: dict[str, Network] = {
    "layers": lambda: (_mlp(256, 1024, 1024, 256), (torch.randn(512, 256),)),
    "wide layers": lambda: (_mlp(64, 4096, 64), (torch.randn(256, 64),)),
    "deep layers": lambda: (_mlp(*[256] * 12), (torch.randn(1024, 256),)),
    "transformer layer": lambda: (Block(), _tokens()),
    "encoder layer": lambda: (Block(causal=False), _tokens()),
    "decoder": lambda: (Decoder(), (torch.randint(0, 1000, (4, 128)),)),
    "untied decoder": lambda: (Decoder(tied=False), (torch.randint(0, 1000, (4, 128)),)),
    "gated feed-forward": lambda: (nn.Sequential(Gated(), Gated()), _tokens()),
    "torch's encoder": lambda: (nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True), _tokens()),
    "torch's decoder": lambda: (nn.TransformerDecoderLayer(256, 4, 1024, 0.0, batch_first=True), (*_tokens(), *_tokens())),
    "cross attention": lambda: (Cross(), (torch.randn(4, 256, 256), torch.randn(4, 77, 128))),
    "causal attention": lambda: (Attention(256, 4, causal=True), _tokens(4, 512)),
    "residual network": lambda: (
        nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), Residual(32), Residual(32, 2), Residual(64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
        _images(16),
    ),
    "VGG": lambda: (
        nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 256), nn.ReLU(), nn.Linear(256, 10)),
        _images(16),
    ),
    "depthwise": lambda: (
        nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.Conv2d(64, 64, 3, 1, 1, groups=64), nn.BatchNorm2d(64), nn.SiLU(), nn.Conv2d(64, 128, 1)),
        _images(16, 64),
    ),
    "U-Net": lambda: (Unet(), _images(8, 64)),
    "1-D convolutions": lambda: (
        nn.Sequential(nn.Conv1d(80, 256, 3, 1, 1), nn.GELU(), nn.Conv1d(256, 256, 3, 2, 1), nn.GELU()), (torch.randn(4, 80, 600),),
    ),
    "3-D convolutions": lambda: (
        nn.Sequential(nn.Conv3d(4, 32, 3, 1, 1), nn.SiLU(), nn.Conv3d(32, 32, 3, 1, 1, groups=4), nn.ConvTranspose3d(32, 8, 2, 2)), (torch.randn(2, 4, 8, 24, 24),),
    ),
    "transposed": lambda: (
        nn.Sequential(nn.ConvTranspose2d(64, 128, 4, 2, 1), nn.LeakyReLU(), nn.ConvTranspose2d(128, 3, 4, 2, 1), nn.Tanh()), (torch.randn(8, 64, 16, 16),),
    ),
    "vision transformer": lambda: (nn.Sequential(nn.Conv2d(3, 256, 8, 8), nn.Flatten(2), nn.Linear(64, 64), Block(64, 2)), _images(8, 64)),
    "recommender": lambda: (Recommender(), (torch.randn(512, 13), torch.randint(0, 5000, (512, 6, 4)))),
    "LSTM": lambda: (Memory(nn.LSTM), (torch.randn(8, 24, 64),)),
    "GRU": lambda: (Memory(nn.GRU), (torch.randn(8, 24, 64),)),
    "normalised": lambda: (nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 512), nn.Softmax(-1), nn.Linear(512, 512)), (torch.randn(512, 512),)),
    "checkpointed": lambda: (Checkpointed(), _tokens(8, 256, 128)),
    "Fourier": lambda: (Spectral(), _tokens(8, 256, 128)),
    "scan": lambda: (Scanned(), _tokens(8, 256, 128)),
    "experts": lambda: (Routed(), (torch.randn(256, 128),)),
    "autoencoder": lambda: (nn.Sequential(nn.Linear(784, 256), nn.ELU(), nn.Linear(256, 16), nn.Linear(16, 256), nn.ELU(), nn.Linear(256, 784), nn.Sigmoid()), (torch.randn(512, 784),)),
    "upsampling": lambda: (nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(32, 16, 3, 1, 1), nn.PixelShuffle(2), nn.InstanceNorm2d(4, affine=True)), _images(4, 32)),
    "bfloat16 decoder": lambda: (Decoder().to(torch.bfloat16), (torch.randint(0, 1000, (4, 128)),)),
}  # fmt: skip
