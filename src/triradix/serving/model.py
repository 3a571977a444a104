"""A tiny random Llama, and a tokenizer whose words are tokens: N words make N tokens.

Its weights are large enough that what it says depends on all of the prompt: a wrong KV slot changes the output. Runs in
the engine's environment: ``python -m triradix.serving.model FOLDER``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from triradix.serving.environment import EnvironmentMissing, variables

VOCABULARY = 32_000
"""Token ids from 4 on are words; before them come padding, begin, end, unknown."""


def make_model(folder: Path, vocabulary: int = VOCABULARY, layers: int = 2, hidden: int = 64, heads: int = 4) -> None:
    """Write the model and its tokenizer to ``folder``, always the same ones."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 2),
        head_dim=16,
        max_position_embeddings=32_768,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        torch_dtype="float32",
        initializer_range=0.5,
    )
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(folder)
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, **{f"w{token}": token for token in range(4, vocabulary)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
        model_max_length=32_768,
    ).save_pretrained(folder)


def tiny_model(python: Path) -> Path:
    """The model, made once beside the engine of this Python. EnvironmentMissing if that cannot be done."""
    folder = python.parent.parent / "tiny-llama"
    if not (folder / "made").exists():
        command = [str(python), "-m", "triradix.serving.model", str(folder)]
        done = subprocess.run(command, env=variables(), capture_output=True, text=True)
        if done.returncode:
            raise EnvironmentMissing(f"the model cannot be made: {done.stderr.strip().splitlines()[-1]}")
        (folder / "made").touch()
    return folder


if __name__ == "__main__":
    make_model(Path(sys.argv[1]))
