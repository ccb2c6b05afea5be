"""Java's regular expressions as far as RE2, which DuckDB has, means the same by them."""

from __future__ import annotations

import re

_LINE_END = r"\n\r\x{85}\x{2028}\x{2029}"
_SPACES = r"\t\n\x0b\f\r "
_END = rf"(?:\r\n|[{_LINE_END}])?\z"


def to_re2(pattern: str, *, is_search: bool) -> str | None:  # noqa: C901
    r"""Translate a pattern of Java's to RE2; None if that is not sure to mean the same.

    Args:
        pattern: The pattern.
        is_search: Only whether it matches matters, not what.

    >>> to_re2("^a+$", is_search=True), to_re2("(?=a)", is_search=True)
    ('^a+(?:\\r\\n|[\\n\\r\\x{85}\\x{2028}\\x{2029}])?\\z', None)
    """
    out, position, is_class = [], 0, False
    while position < len(pattern):
        mark = pattern[position]
        two = pattern[position : position + 2]
        position += 1
        if mark == "\\":
            position += 1
            translated = _escaped(two[1:], is_class=is_class)
        elif is_class:
            translated = None if mark in "[&" else mark
            is_class = mark != "]"
        elif mark == "[":
            is_class, translated = True, mark
            if pattern[position : position + 1] == "^":
                translated, position = "[^", position + 1
            if pattern[position : position + 1] == "]":
                translated = None
        elif mark == ".":
            translated = f"[^{_LINE_END}]"
        elif mark == "$":
            translated = _END if is_search and position == len(pattern) else None
        elif mark == "(" and pattern[position : position + 1] == "?":
            translated = mark if pattern[position : position + 2] == "?:" else None
        elif mark in "*+?}" and pattern[position : position + 1] == "+":
            translated = None
        else:
            translated = mark
        if translated is None:
            return None
        out.append(translated)
    return "".join(out)


def _escaped(mark: str, *, is_class: bool) -> str | None:
    if mark == "s":
        return _SPACES if is_class else f"[{_SPACES}]"
    if mark == "S" and not is_class:
        return f"[^{_SPACES}]"
    if mark and (mark in "dDwWntrf" or not mark.isalnum()):
        return "\\" + mark
    return None


def plain(pattern: str) -> str | None:
    r"""Give the text that a pattern matches, if it matches one only.

    >>> plain(","), plain(r"\|"), plain("a+")
    (',', '|', None)
    """
    if not re.fullmatch(r"(?:\\[^\w\s]|[^\\.$|()\[\]{}^*+?])+", pattern):
        return None
    return re.sub(r"\\(.)", r"\1", pattern)
