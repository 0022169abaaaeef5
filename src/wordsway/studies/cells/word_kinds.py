"""What kind of word a word of an English text is: function word, punctuation, or one with content."""

import unicodedata

CONTENT, FUNCTION, PUNCTUATION = KINDS = ("content", "function", "punctuation")

# Articles, pronouns, prepositions, conjunctions, auxiliary verbs, particles and plain adverbs of degree or place: words
# that every text has, whatever it is about. Negations are here too, though one of them may decide a text.
_FUNCTION = frozenset(
    """
    a an the this that these those each every either neither some any no none all both half such same other another
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself we us
    our ours ourselves they them their theirs themselves one ones who whom whose which what whoever whatever whichever
    somebody someone something anybody anyone anything nobody nothing everybody everyone everything
    about above across after against along among around as at before behind below beneath beside besides between beyond
    by despite down during except for from in inside into like near of off on onto out outside over past per since than
    through throughout till to toward towards under until up upon via with within without
    and but or nor so yet if unless because although though while whereas whether once when whenever where wherever why
    how lest
    am is are was were be been being do does did doing done have has had having can could may might must shall should
    will would ought need dare
    not n't never ever also too very just only even still again already always often quite rather almost then thus hence
    here there now more most less least much many few several enough
    s t d ll m re ve don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn mustn needn ain
    """.split()
)


def word_kind(word: str) -> str:
    """Punctuation has no letter and no digit in it; function words are a list of ours, in any case, with the parts that
    tokenizers make of contractions; everything else has content, numbers too."""
    if not any(unicodedata.category(char)[0] in "LN" for char in word):
        return PUNCTUATION
    return FUNCTION if word.lower().replace("\u2019", "'").strip("'") in _FUNCTION | {"n't"} else CONTENT
