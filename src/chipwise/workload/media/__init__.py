"""Networks other than language models, built in: generators of images and video, encoders of text, pictures and sound,
recommenders. `pipeline(name)` writes one out as stages of operators for a batch and a size.

`layers` makes blocks of operators. Families of networks are rows of `workload/data/network_families.toml`, which
`written` reads, where layers follow one another; `unet`, `vae`, `text`, `vision`, `tower`, `cnn`, `detect`, `speech`,
`voice`, `recommender` and `sized` hold the others as dataclasses of dimensions. `workload/data/media_models.toml` holds
the dimensions of published models with their sources. `facts` reads them, `parts` reads the configurations of a
diffusers folder, and `assemble` puts the parts of a request together.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.workload.media.assemble import entry, from_macs, names, pipeline, windowed
    from chipwise.workload.media.parts import from_parts

__all__ = ["entry", "from_macs", "from_parts", "names", "pipeline", "windowed"]


def __getattr__(name: str) -> Any:
    """Families are many, and a question about a language model needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    home = "parts" if name == "from_parts" else "assemble"
    return getattr(import_module(f"{__name__}.{home}"), name)
