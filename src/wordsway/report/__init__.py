"""Results as a page: one file that needs no network, for measurements and for whole runs."""

from wordsway.report.page import report_html, script, stylesheet, text_fragment, word_fragment

__all__ = ["report_html", "script", "stylesheet", "text_fragment", "word_fragment"]
