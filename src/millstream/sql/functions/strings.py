"""Functions of strings."""

from __future__ import annotations

import re

from millstream.sql.cast import UNSURE
from millstream.sql.function_call import Call, Function, from_template
from millstream.sql.regex import plain, to_re2
from millstream.sql.scope import TypedSql
from millstream.sql.types import BOOLEAN, INT, STRING, array, string_literal

_UPPER = (
    r"[\x{DF}\x{149}\x{1F0}\x{390}\x{3B0}\x{587}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFC}"
    r"\x{FB00}-\x{FB17}]"
)
"""Letters that become two in upper case, or of which DuckDB and Java think differently."""
_LOWER = r"[\x{130}\x{3A3}]"


def _length(call: Call) -> TypedSql:
    value = call.of(0, "string", "binary")
    measure = "length" if value.type.kind == "string" else "octet_length"
    return TypedSql(f"CAST({measure}({value.text}) AS INTEGER)", INT)


def _substring(call: Call) -> TypedSql:
    length = call.to(2, INT) if len(call.arguments) > 2 else "2147483647"
    return TypedSql(
        f"part({call.to(0, STRING)}, {call.to(1, INT)}, CAST({length} AS BIGINT))", STRING
    )


def _pad(call: Call) -> TypedSql:
    filler = call.text(2) if len(call.arguments) > 2 else " "
    if not filler:
        call.refuse(f"{call.name} with a filler that is empty or not written out")
    length = f"CAST(greatest({call.to(1, INT)}, 0) AS INTEGER)"
    return TypedSql(
        f"{call.name}({call.to(0, STRING)}, {length}, {string_literal(filler)})", STRING
    )


def _replace(call: Call) -> TypedSql:
    new = call.to(2, STRING) if len(call.arguments) > 2 else "''"
    return TypedSql(f"replace({call.to(0, STRING)}, {call.to(1, STRING)}, {new})", STRING)


def _concat(call: Call) -> TypedSql:
    return call.expressions.concatenated(call.values(), call.node)


def _concat_ws(call: Call) -> TypedSql:
    parts = [call.of(index, "string", "void").text for index in range(len(call.arguments))]
    return TypedSql(f"concat_ws({', '.join(parts)})", STRING)


def _split(call: Call) -> TypedSql:
    pattern = call.text(1)
    if pattern is not None and (text := plain(pattern)):
        return TypedSql(
            f"string_split({call.to(0, STRING)}, {string_literal(text)})", array(STRING)
        )
    return TypedSql(f"string_split_regex({call.to(0, STRING)}, {_pattern(call)})", array(STRING))


def _pattern(call: Call) -> str:
    pattern = call.text(1)
    expression = to_re2(pattern, is_search=False) if pattern else None
    # What the two make of a match of nothing differs.
    if expression is None or pattern is None or re.search(pattern, ""):
        call.refuse(f"{call.name} with regular expression {call.arguments[1].sql('spark')}")
    return string_literal(expression)


def _extract(call: Call) -> TypedSql:
    group = call.number(2) if len(call.arguments) > 2 else 1
    pattern = _pattern(call)
    groups = re.compile(call.text(1) or "").groups
    if group is None or not 0 <= group <= groups:
        call.refuse(f"regexp_extract of group {group} of {groups}")
    return TypedSql(f"regexp_extract({call.to(0, STRING)}, {pattern}, {group})", STRING)


def _regexp_replace(call: Call) -> TypedSql:
    new = call.text(2)
    if new is None or "\\" in new or re.search(r"\$(?!\d)|\$\d\d", new):
        call.refuse("regexp_replace with this replacement")
    replacement = string_literal(re.sub(r"\$(\d)", r"\\\1", new))
    return TypedSql(
        f"regexp_replace({call.to(0, STRING)}, {_pattern(call)}, {replacement}, 'g')", STRING
    )


def _sha2(call: Call) -> TypedSql:
    if call.number(1) not in (0, 256):
        call.refuse()
    return TypedSql(f"sha256({call.to(0, STRING)})", STRING)


FUNCTIONS = {
    **dict.fromkeys(("upper", "ucase"), from_template("upper_case({0})", STRING, STRING)),
    **dict.fromkeys(("lower", "lcase"), from_template("lower_case({0})", STRING, STRING)),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), Function(_length)),
    **dict.fromkeys(("substring", "substr"), Function(_substring, 2, 3)),
    "left": from_template("part({0}, 1, {1})", STRING, STRING, INT),
    **{
        name: from_template(f"{name}({{0}}, ' ')", STRING, STRING)
        for name in ("trim", "ltrim", "rtrim")
    },
    **dict.fromkeys(("lpad", "rpad"), Function(_pad, 2, 3)),
    "repeat": from_template("repeat({0}, {1})", STRING, STRING, INT),
    "replace": Function(_replace, 2, 3),
    "instr": from_template("CAST(instr({0}, {1}) AS INTEGER)", INT, STRING, STRING),
    **dict.fromkeys(
        ("locate", "position"),
        from_template("CAST(instr({1}, {0}) AS INTEGER)", INT, STRING, STRING),
    ),
    "concat": Function(_concat, 1, 99),
    "concat_ws": Function(_concat_ws, 2, 99),
    "startswith": from_template("starts_with({0}, {1})", BOOLEAN, STRING, STRING),
    "endswith": from_template("ends_with({0}, {1})", BOOLEAN, STRING, STRING),
    "contains": from_template("contains({0}, {1})", BOOLEAN, STRING, STRING),
    "split": Function(_split, 2, 2),
    "split_part": from_template("split_part({0}, {1}, {2})", STRING, STRING, STRING, INT),
    "translate": from_template("translate({0}, {1}, {2})", STRING, STRING, STRING, STRING),
    "regexp_extract": Function(_extract, 2, 3),
    "regexp_replace": Function(_regexp_replace, 3, 3),
    "md5": from_template("md5({0})", STRING, STRING),
    "sha2": Function(_sha2, 2, 2),
    "ascii": from_template("CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END", INT, STRING),
}
"""By their names in Spark."""

MACROS = (
    f"""upper_case(x) AS CASE WHEN regexp_matches(x, '{_UPPER}')
        THEN error('{UNSURE}upper case of ''' || x || '''') ELSE upper(x) END""",
    f"""lower_case(x) AS CASE WHEN regexp_matches(x, '{_LOWER}')
        THEN error('{UNSURE}lower case of ''' || x || '''') ELSE lower(x) END""",
    """begin_of(s, p) AS CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END""",
    """part(s, p, n) AS substring(s, greatest(begin_of(s, p), 0) + 1,
        greatest(begin_of(s, p) + n - greatest(begin_of(s, p), 0), 0))""",
)
"""What these need in DuckDB."""
