"""Tiny random models of the families that have no real weights at hand, all with one real tokenizer."""

from typing import Any

import torch

from wordsway.models.loading.load import read_tokenizer
from wordsway.models.loading.locate import locate

SITES = {  # the module whose output is hidden state 0
    "bert": "embeddings",
    "mpnet": "embeddings",
    "distilbert": "embeddings",
    "roberta": "embeddings",
    "gpt2": "drop",
    "llama": "embed_tokens",
}
FAMILIES = tuple(SITES)
CAUSAL = ("gpt2", "llama")


def tokenizer() -> Any:
    return read_tokenizer(locate("minilm"))


def tiny(family: str, head: str = "", dtype: torch.dtype = torch.float32, layers: int = 3, **more: Any) -> Any:
    """A model in eval mode; `head` is "", "classifier" or "causal". Weights are large: attention is not flat."""
    import transformers as t

    size: dict[str, Any] = {"vocab_size": 30522, "num_labels": 3, **more}
    common: dict[str, Any] = {
        "hidden_size": 24,
        "num_hidden_layers": layers,
        "num_attention_heads": 3,
        "intermediate_size": 48,
    }
    configs = {
        "bert": lambda: t.BertConfig(**size, **common),
        "mpnet": lambda: t.MPNetConfig(**size, **common, pad_token_id=0),
        "roberta": lambda: t.RobertaConfig(**size, **common, pad_token_id=0, max_position_embeddings=200),
        "distilbert": lambda: t.DistilBertConfig(**size, dim=24, n_layers=layers, n_heads=3, hidden_dim=48),
        "gpt2": lambda: t.GPT2Config(**size, n_embd=24, n_layer=layers, n_head=3, bos_token_id=101, eos_token_id=102),
        "llama": lambda: t.LlamaConfig(**size, **common, num_key_value_heads=1),
    }
    names = {"bert": "Bert", "mpnet": "MPNet", "roberta": "Roberta", "distilbert": "DistilBert"}
    name = {**names, "gpt2": "GPT2", "llama": "Llama"}[family]
    ends = {"": "Model", "classifier": "ForSequenceClassification"}
    ends["causal"] = "LMHeadModel" if family == "gpt2" else "ForCausalLM"
    torch.manual_seed(sum(map(ord, family)))
    model = getattr(t, name + ends[head])(configs[family]())
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2 and parameter.shape[0] < 1000:
                parameter.normal_(0, 0.4)
    return model.eval().to(dtype)
