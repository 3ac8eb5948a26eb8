"""Machines of a provider as blocks of Terraform."""

from __future__ import annotations

from chipwise.report.launch.markup import Heredoc, Raw

__all__ = ["aws", "google"]

DISK_GB = 500
BASH = "#!/usr/bin/env bash\n"


def aws(kind: str, region: str, count: int, start: str) -> list[tuple[str, dict[str, object]]]:
    """Instances of AWS that run `start` when they come up."""
    return [
        (
            "terraform",
            {"required_providers": {"aws": Raw('{ source = "hashicorp/aws", version = "~> 6.0" }')}},
        ),
        ('variable "image"', {}),
        ('provider "aws"', {"region": region}),
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


def google(kind: str, region: str, count: int, start: str) -> list[tuple[str, dict[str, object]]]:
    """Instances of Google Cloud that run `start` whenever they come up."""
    return [
        (
            "terraform",
            {"required_providers": {"google": Raw('{ source = "hashicorp/google", version = "~> 7.0" }')}},
        ),
        ('variable "image"', {}),
        ('provider "google"', {"region": region}),
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
