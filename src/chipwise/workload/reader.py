"""Reading configuration keys, keeping account of what was read.

A key that affects size or cost and was not read is an error or a printed assumption: nothing is guessed in
silence (the rule of unread keys).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.errors import UsageError, nearest, shorten

MISSING: Any = object()

# Keys that tell how to train, sample, initialise or load: no tensor and no FLOP depends on them.
IRRELEVANT = frozenset(
    """
    _name_or_path architectures attention_dropout attn_pdrop audio_token_id auto_map aux_loss_alpha
    boi_token_index bos_token_id cache_implementation chat_template diversity_penalty do_sample
    dtype embd_pdrop embedding_dropout eoi_token_index eos_token_id ep_size final_logit_softcapping
    forced_bos_token_id hidden_act hidden_activation hidden_dropout hidden_dropout_prob id2label
    ignore_index image_token_id image_token_index initial_context_length initializer_factor
    initializer_range label2id layer_norm_eps layer_norm_epsilon length_penalty max_length
    media_placeholder_token_id model_type moe_router_scaling_factor n_group no_repeat_ngram_size
    norm_eps norm_topk_prob num_beam_groups num_beams num_return_sequences
    original_max_position_embeddings output_attentions output_hidden_states output_router_logits
    pad_token_id partial_rotary_factor pretraining_tp problem_type repetition_penalty resid_pdrop
    return_dict return_dict_in_generate rms_norm_eps rope_local_base_freq rope_parameters
    rope_scaling rope_theta rotary_dim routed_scaling_factor router_aux_loss_coef
    router_jitter_noise router_z_loss_coef scale_attn_weights scoring_func sep_token_id seq_aux
    summary_activation summary_first_dropout swa_rope_theta swiglu_limit task_specific_params
    temperature tokenizer_class top_k top_p topk_group topk_method torch_dtype transformers_version
    typical_p unsloth_version use_cache use_unified_vision_chunk video_placeholder video_token_id
    vision_soft_tokens_per_image mm_tokens_per_image vision_end_token_id vision_start_token_id vision_token_id
    """.split()
)

# Numbers of special tokens.
TOKENS = ("_token_id", "_token_index", "_token_ids")


class Reader:
    """Typed access to a configuration. Every access is recorded; `assumptions` collects defaults taken.

    All methods raise `UsageError` naming the file, the key, what was found and what is legal.
    """

    def __init__(self, data: Mapping[str, Any], origin: str) -> None:
        self.data = data
        self.origin = origin
        self.assumptions: list[str] = []
        self._read: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether a key is present and not null."""
        return self.data.get(key) is not None

    def count(self, *keys: str, low: int = 1, high: int = 10_000_000, default: Any = MISSING) -> int:
        """A whole number under the first of `keys` that is present; the default is taken in silence, so a
        caller whose default is a guess says so with `assume`. A list of equal entries, one per layer, counts as one."""
        key, value = self._get(keys, default)
        if isinstance(value, list) and len(value) == self.data.get("num_hidden_layers"):
            value = value[0] if all(item == value[0] for item in value) else value
        if isinstance(value, bool) or not isinstance(value, int):
            if not (isinstance(value, float) and value.is_integer()):
                raise self._bad(key, value, "a whole number")
            value = int(value)
        if not low <= value <= high:
            raise self._bad(key, value, f"{low:,} to {high:,}")
        return value

    def flag(self, *keys: str, default: Any = MISSING) -> bool:
        """true or false."""
        key, value = self._get(keys, default)
        if not isinstance(value, bool):
            raise self._bad(key, value, "true or false")
        return value

    def text(self, *keys: str, default: Any = MISSING) -> str:
        """A string."""
        key, value = self._get(keys, default)
        if not isinstance(value, str):
            raise self._bad(key, value, "a text")
        return value

    def numbers(self, key: str, *, length: int | None = None, default: Any = MISSING) -> tuple[int, ...]:
        """A list of whole numbers."""
        key, value = self._get((key,), default)
        items = self._list(key, value, length)
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in items):
            raise self._bad(key, value, "a list of whole numbers")
        return tuple(items)

    def names(self, key: str, *, length: int | None = None, default: Any = MISSING) -> tuple[str, ...]:
        """A list of strings."""
        key, value = self._get((key,), default)
        items = self._list(key, value, length)
        if not all(isinstance(i, str) for i in items):
            raise self._bad(key, value, "a list of texts")
        return tuple(items)

    def table(self, key: str) -> Mapping[str, Any]:
        """A nested object; empty where absent."""
        key, value = self._get((key,), {})
        if not isinstance(value, Mapping):
            raise self._bad(key, value, "an object")
        return value

    def assume(self, text: str) -> None:
        """Record something that the configuration does not say."""
        if text not in self.assumptions:
            self.assumptions.append(text)

    def skip(self, *keys: str) -> None:
        """Mark keys as understood and without effect here."""
        self._read.update(keys)

    def require(self, key: str, allowed: Iterable[Any], why: str) -> None:
        """A key that must be absent or have one of the values that this family is read with."""
        self._read.add(key)
        value = self.data.get(key)
        if value is not None and value not in tuple(allowed):
            raise UsageError(f"{self.origin}: {key} = {shorten(repr(value))} is not read yet", why)

    def unread(self) -> tuple[str, ...]:
        """Keys that nobody asked for and that are not known to be irrelevant."""
        rest = (k for k in self.data if k not in self._read and k not in IRRELEVANT and not k.endswith(TOKENS))
        return tuple(sorted(k for k in rest if self.data[k] not in (None, False, [], {})))

    def _get(self, keys: tuple[str, ...], default: Any) -> tuple[str, Any]:
        self._read.update(keys)
        for key in keys:
            if self.data.get(key) is not None:
                return key, self.data[key]
        if default is MISSING:
            close = nearest(keys[0], (k for k in self.data if k not in IRRELEVANT), 2)
            hint = f"did you mean {', '.join(close)}?" if close else "it is needed for the size of the model"
            raise UsageError(f"{self.origin}: no {' or '.join(keys)}", hint)
        return keys[0], default

    def _list(self, key: str, value: Any, length: int | None) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise self._bad(key, value, "a list")
        if length is not None and len(value) != length:
            raise self._bad(key, f"{len(value)} entries", f"{length} entries, one per layer")
        return list(value)

    def _bad(self, key: str, value: Any, wanted: str) -> UsageError:
        return UsageError(f"{self.origin}: {key} is {shorten(str(value), 40)}", f"expected {wanted}")
