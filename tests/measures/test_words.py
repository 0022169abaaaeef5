"""Words from tokens: awkward texts with real tokenizers of every kind."""

import json
import warnings
from importlib.resources import files
from typing import Any
from unicodedata import combining

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsway as ws
from wordsway.models.loading.load import load_encoder
from wordsway.models.loading.locate import locate
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.models.running.word_ids import group_words, split_words

AWKWARD = [
    "I don't know; we've seen O'Brien's 3.14 e-mails",
    "👩‍💻 wrote 👍🏽👍🏽 code 😀!!!",
    "你好,世界。これはテストです",
    "مرحبا بالعالم (hello) שלום",
    "tab\tand\nnew\r\nline\u2028and\u00a0hard space",
    "bell\x07 null\x00 escape\x1b[31m end",
    "naïve café Zürich ﬁn",
    "a" * 10_000,
    "snake_case and/or x=y+z <script>alert('x')</script>",
    "  spaces   everywhere  ",
    "e\u0301 combining n\u0303",
]


def sample_lines() -> list[str]:
    content = (files("wordsway.datasets") / "bundled" / "sample.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["text"] for line in content.splitlines()]


def trained(kind: str) -> Any:
    """A real SentencePiece-like tokenizer: Unigram with a pre-tokenizer at spaces, or BPE that sees a text whole."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    if kind == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()  # pyright: ignore[reportAttributeAccessIssue]
        trainer: Any = trainers.UnigramTrainer(vocab_size=600, special_tokens=["<unk>", "</s>"], unk_token="<unk>")
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()  # pyright: ignore[reportAttributeAccessIssue]
        alphabet = [f"<0x{k:02X}>" for k in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "</s>", *alphabet], max_token_length=8)
    tokenizer.decoder = decoders.Metaspace()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.train_from_iterator(sample_lines(), trainer)
    if kind == "bpe-whole":  # pieces learnt within words, as Llama's are, and texts that are not split at all
        tokenizer.pre_tokenizer = None  # pyright: ignore[reportAttributeAccessIssue]
        steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        tokenizer.normalizer = normalizers.Sequence(steps)  # pyright: ignore[reportAttributeAccessIssue]
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>")


def small_llama(tokenizer: Any) -> PretrainedEncoder:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=20_000,
    )
    torch.manual_seed(0)
    return PretrainedEncoder(LlamaModel(config).eval(), tokenizer)


@pytest.fixture(scope="module", params=["minilm", "unigram", "bpe-whole", "smollm2"])
def encoder(request: pytest.FixtureRequest) -> PretrainedEncoder:
    if request.param == "minilm":
        return load_encoder(locate("minilm"), "cpu")
    if request.param == "smollm2":
        return load_encoder(locate(request.getfixturevalue("smollm2")), "cpu")
    return small_llama(trained(request.param))


def check(encoder: PretrainedEncoder, text: str) -> None:
    """What holds of every text: each word is a run of visible characters, in order, made of whole tokens."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.TextWarning)
        (part,) = encoder.tokenize([text])
    numbers = [word for word in part.word_ids if word is not None]
    assert sorted(set(numbers)) == list(range(len(set(numbers))))
    assert all(word is None for word, added in zip(part.word_ids, part.special, strict=True) if added)
    X = torch.ones(len(part.ids), 1)
    tokens = ws.Tokens(
        X, part.tokens, part.word_ids, torch.tensor(part.special), part.offsets, text, False, part.ids, {}
    )
    assert len(tokens.words) == len(tokens.pieces) > 0
    for word in tokens.words:
        assert word and word == word.strip() and len(word.split()) == 1, (word, text)
    seen = {k for start, end in tokens.spans for k in range(start, end)}
    shown = [k for k, c in enumerate(text) if c.isprintable() and not c.isspace() and not combining(c)]
    lost = [text[k] for k in shown if k not in seen]
    assert not lost, (lost, tokens.words)


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD, ids=lambda text: repr(text[:12]))
def test_awkward_texts(encoder: PretrainedEncoder, text: str) -> None:
    if len(text) > 1000 and encoder.limit is not None and encoder.limit < 2000 and encoder.name != "minilm":
        pytest.skip("longer than this model takes")
    check(encoder, text)


@pytest.mark.slow
def test_any_review(encoder: PretrainedEncoder) -> None:
    for text in sample_lines()[::40]:
        check(encoder, text)


def test_a_tokenizer_that_sees_a_text_whole_is_split() -> None:
    tokenizer = trained("bpe-whole")
    assert set(tokenizer("I love her smile").word_ids()) == {0}
    (part,) = small_llama(tokenizer).tokenize(["I love her smile, don't you? 你好"])
    found = [tuple(k for k, word in enumerate(part.word_ids) if word == number) for number in range(10)]
    words = ["".join(part.tokens[k] for k in tokens).strip("▁") for tokens in found]
    assert words[:4] == ["I", "love", "her", "smile"] and words[4] == "," and words[5] == "don't"
    assert len(found[8]) == len(found[9]) == 3  # each ideograph is three bytes


def test_a_huge_word_is_one_word_or_an_error_that_names_the_option() -> None:
    with pytest.warns(ws.TextWarning, match="does not know"):
        assert ws.encode("b" * 10_000).words == ("b" * 10_000,)
    encoder = small_llama(trained("bpe-whole"))
    encoder.limit = 100
    with pytest.raises(ws.InputError, match="--max-tokens 100"):
        encoder.tokenize(["xyz" * 3333])


def test_white_space_alone_is_no_word() -> None:
    assert group_words("a \n b", [0, 1, 2], [(0, 1), (1, 4), (4, 5)], [False] * 3) == [0, None, 1]
    assert group_words(" ab", [None, 0, 0], [(0, 0), (0, 2), (2, 3)], [True, False, False]) == [None, 0, 0]


def test_split_words() -> None:
    text = "We don't like 你好, <br /> really!!"
    assert [text[a:b] for a, b in split_words(text)] == [
        *("We", "don't", "like", "你", "好", ",", "<", "br", "/>", "really", "!!")
    ]


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=60))
def test_any_text_at_all(text: str) -> None:
    encoder = load_encoder(locate("minilm"), "cpu")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ws.TextWarning)
            tokens = ws.encode(text)
    except ws.InputError as error:
        assert "empty" in str(error) or "no words" in str(error) or "surrogate" in str(error)
        return
    assert len(tokens) == len(tokens.X) <= (encoder.limit or 0)
    assert all(0 <= start <= end <= len(text) for start, end in tokens.spans)
    assert set(range(len(tokens.words))) == {word for word in tokens.word_ids if word is not None}
