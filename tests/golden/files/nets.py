"""Networks of a user, as `estimate nets.py:NAME` reads them: what they return is traced."""

import torch
from torch import nn


class Block(nn.Module):
    """Attention and a gated feed-forward, as in decoders."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.gate, self.down = (
            nn.Linear(width, 4 * width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], self.heads, x.shape[2] // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        y = self.norms[1](x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def mlp(rows: int = 512) -> tuple[nn.Module, torch.Tensor]:
    """Two wide products."""
    net = nn.Sequential(nn.Linear(4096, 16384), nn.GELU(), nn.Linear(16384, 4096)).to(torch.bfloat16)
    return net, torch.empty(rows, 4096, dtype=torch.bfloat16)


def encoder(batch: int = 8, tokens: int = 256) -> tuple[nn.Module, torch.Tensor]:
    """Four layers that see all tokens."""
    net = nn.Sequential(*(Block(768, 12, causal=False) for _ in range(4))).to(torch.bfloat16)
    return net, torch.empty(batch, tokens, 768, dtype=torch.bfloat16)


def decoder(batch: int = 1, tokens: int = 2048) -> tuple[nn.Module, torch.Tensor]:
    """Four layers that see what came before."""
    net = nn.Sequential(*(Block(2048, 16, causal=True) for _ in range(4))).to(torch.bfloat16)
    return net, torch.empty(batch, tokens, 2048, dtype=torch.bfloat16)


def convolutions(batch: int = 32) -> tuple[nn.Module, torch.Tensor]:
    """A stem, two convolutions with their norms, a classifier; in fp32."""
    net = nn.Sequential(
        nn.Conv2d(3, 64, 7, stride=2, padding=3),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 1000),
    )
    return net, torch.empty(batch, 3, 224, 224)
