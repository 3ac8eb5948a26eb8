"""Machines of a provider as blocks of Terraform."""

from __future__ import annotations

from chipwise.report.launch.markup import Heredoc, Raw

__all__ = ["aws", "google"]

Block = tuple[str, dict[str, object]]

DISK_GB = 500
BASH = "#!/usr/bin/env bash\n"


def aws(kind: str, region: str, count: int, start: str) -> list[Block]:
    """Instances of AWS that run `start` when they come up."""
    return [
        *_provider("aws", "6.0", region),
        (
            'resource "aws_instance" "chipwise"',
            {
                "count": count,
                "ami": Raw("var.image"),
                "instance_type": kind,
                **({"user_data": Heredoc(BASH + start)} if start else {}),
                "root_block_device": {"volume_size": DISK_GB},
                "tags": Raw('{ Name = "chipwise-${count.index}" }'),
            },
        ),
    ]


def google(kind: str, region: str, count: int, start: str) -> list[Block]:
    """Instances of Google Cloud that run `start` whenever they come up."""
    return [
        *_provider("google", "7.0", region),
        (
            'resource "google_compute_instance" "chipwise"',
            {
                "count": count,
                "name": Raw('"chipwise-${count.index}"'),
                "machine_type": kind,
                "zone": f"{region}-a",
                "boot_disk": {"initialize_params": {"image": Raw("var.image"), "size": DISK_GB}},
                "network_interface": {"network": "default"},
                "scheduling": {"on_host_maintenance": "TERMINATE"},
                **({"metadata_startup_script": Heredoc(BASH + start)} if start else {}),
            },
        ),
    ]


def _provider(name: str, version: str, region: str) -> list[Block]:
    """Which provider, in which version, where; and the image, which the user names."""
    needed = f'{{ source = "hashicorp/{name}", version = "~> {version}" }}'
    return [
        ("terraform", {"required_providers": {name: Raw(needed)}}),
        ('variable "image"', {}),
        (f'provider "{name}"', {"region": region}),
    ]
