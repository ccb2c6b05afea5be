"""The names that Spark gives to columns without an alias."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from millstream.sql.literal import type_of
from millstream.sql.refusal import refuse
from millstream.sql.types import Type

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.And: "AND", exp.Or: "OR", exp.BitwiseAnd: "&", exp.BitwiseOr: "|",
}  # fmt: skip
_IN_CAPITALS = {
    "atan", "ceil", "cos", "dense_rank", "exp", "floor", "log10", "log2", "percent_rank", "power",
    "rank", "signum", "sin", "sqrt", "tan",
}  # fmt: skip
_TYPES = ("bigint", "boolean", "date", "double", "int", "string", "timestamp")
"""Types that cast as functions."""
_DEFAULTS = {
    "from_unixtime": (2, "yyyy-MM-dd HH:mm:ss"),
    "lag": (2, "1"),
    "lead": (2, "1"),
    "locate": (3, "1"),
    "lpad": (3, " "),
    "percentile": (3, "1"),
    "position": (3, "1"),
    "regexp_extract": (3, "1"),
    "regexp_replace": (4, "1"),
    "replace": (3, ""),
    "round": (2, "0"),
    "rpad": (3, " "),
    "sort_array": (2, "true"),
    "split": (3, "-1"),
    "substr": (3, "2147483647"),
    "substring": (3, "2147483647"),
    "unix_timestamp": (2, "yyyy-MM-dd HH:mm:ss"),
}
"""What Spark adds to a call with fewer arguments."""
_RANKING = ("row_number", "rank", "dense_rank", "percent_rank", "ntile")


def column_name(node: exp.Expr, is_source: Callable[[str], bool]) -> str:
    """Return the name of a selected column.

    Args:
        node: What is selected.
        is_source: Whether a name is one of FROM's.
    """
    if isinstance(node, exp.Alias):
        return node.alias
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Anonymous) and node.name.lower() == "window":
        return "window"
    inner = node.this if isinstance(node, exp.Cast) else None
    if isinstance(node, exp.Anonymous) and node.name.lower() in _TYPES:
        [inner] = node.expressions
    if isinstance(inner, exp.Column):
        parts = [part.name for part in inner.parts]
        if len(parts) == 1 + is_source(parts[0]):
            return parts[-1]
    if isinstance(node, exp.Column | exp.Dot):
        return node.name if isinstance(node, exp.Column) else node.expression.name
    return _Namer(is_source).name(node)


class _Namer:
    def __init__(self, is_source: Callable[[str], bool]) -> None:
        self._is_source = is_source

    def name(self, node: exp.Expr) -> str:
        if sign := _SIGNS.get(type(node)):
            return f"({self.name(node.this)} {sign} {self.name(node.expression)})"
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            _refuse(node)
        return str(method(node))

    def _all(self, nodes: list[exp.Expr]) -> str:
        return ", ".join(self.name(node) for node in nodes)

    def _column(self, node: exp.Column) -> str:
        names = [part.name for part in node.parts]
        return ".".join(names[1:] if len(names) > 1 and self._is_source(names[0]) else names)

    def _identifier(self, node: exp.Identifier) -> str:
        return f"namedlambdavariable({node.name})"

    def _dot(self, node: exp.Dot) -> str:
        return f"{self.name(node.this)}.{node.expression.name}"

    def _paren(self, node: exp.Paren) -> str:
        return self.name(node.this)

    def _literal(self, node: exp.Literal) -> str:
        text = node.name
        return str(float(text)) if not node.is_string and "e" in text.lower() else text

    def _null(self, node: exp.Null) -> str:  # noqa: ARG002
        return "NULL"

    def _boolean(self, node: exp.Boolean) -> str:
        return "true" if node.this else "false"

    def _star(self, node: exp.Star) -> str:  # noqa: ARG002
        return "1"

    def _neg(self, node: exp.Neg) -> str:
        is_literal = isinstance(node.this, exp.Literal)
        return f"-{node.this.name}" if is_literal else f"(- {self.name(node.this)})"

    def _neq(self, node: exp.NEQ) -> str:
        return f"(NOT ({self.name(node.this)} = {self.name(node.expression)}))"

    def _not(self, node: exp.Not) -> str:
        if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return f"({self.name(node.this.this)} IS NOT NULL)"
        return f"(NOT {self.name(node.this)})"

    def _is(self, node: exp.Is) -> str:
        if isinstance(node.expression, exp.Null):
            return f"({self.name(node.this)} IS NULL)"
        return f"({self.name(node.this)} <=> {self.name(node.expression)})"

    def _between(self, node: exp.Between) -> str:
        return f"between({self._all([node.this, node.args['low'], node.args['high']])})"

    def _in(self, node: exp.In) -> str:
        if not node.expressions:
            _refuse(node)
        return f"({self.name(node.this)} IN ({self._all(node.expressions)}))"

    def _like(self, node: exp.Like) -> str:
        return _not(node, f"{self.name(node.this)} LIKE {self.name(node.expression)}")

    def _regexplike(self, node: exp.RegexpLike) -> str:
        return _not(node, f"RLIKE({self.name(node.this)}, {self.name(node.expression)})")

    def _dpipe(self, node: exp.DPipe) -> str:
        return f"concat({self.name(node.this)}, {self.name(node.expression)})"

    def _cast(self, node: exp.Cast) -> str:
        wanted = type_of(node.to) or Type("unknown")
        if (
            isinstance(node.this, exp.Literal)
            and wanted.kind in ("date", "timestamp")
            and not node.meta.get("cast")
        ):
            return f"{wanted.kind.upper()} '{node.this.name}'"
        return f"CAST({self.name(node.this)} AS {str(wanted).upper()})"

    def _trycast(self, node: exp.TryCast) -> str:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return node.this.name
        return f"TRY_{self._cast(node)}"

    def _case(self, node: exp.Case) -> str:
        if node.this:
            whens = (f"({self.name(node.this)} = {self.name(i.this)})" for i in node.args["ifs"])
        else:
            whens = (self.name(i.this) for i in node.args["ifs"])
        thens = (self.name(i.args["true"]) for i in node.args["ifs"])
        branches = " ".join(f"WHEN {w} THEN {t}" for w, t in zip(whens, thens, strict=True))
        default = node.args.get("default")
        return f"CASE {branches}{f' ELSE {self.name(default)}' if default else ''} END"

    def _bracket(self, node: exp.Bracket) -> str:
        return f"{self.name(node.this)}[{self._all(node.expressions)}]"

    def _extract(self, node: exp.Extract) -> str:
        return f"extract({node.this.name} FROM {self.name(node.expression)})"

    def _strposition(self, node: exp.StrPosition) -> str:
        return f"position({self.name(node.args['substr'])}, {self.name(node.this)}, 1)"

    def _trim(self, node: exp.Trim) -> str:
        return f"trim({self.name(node.this)})"

    def _substring(self, node: exp.Substring) -> str:
        arguments = [node.this, node.args["start"], node.args.get("length")]
        names = [self.name(part) for part in arguments if part]
        return f"substring({', '.join(names)}{', 2147483647' if len(names) == 2 else ''})"

    def _currentdate(self, node: exp.CurrentDate) -> str:  # noqa: ARG002
        return "current_date()"

    def _currenttimestamp(self, node: exp.CurrentTimestamp) -> str:  # noqa: ARG002
        return "current_timestamp()"

    def _if(self, node: exp.If) -> str:
        arguments = [node.this, node.args["true"], node.args.get("false") or exp.Null()]
        return f"(IF({self._all(arguments)}))"

    def _distinct(self, node: exp.Distinct) -> str:
        return f"DISTINCT {self._all(node.expressions)}"

    def _anonymous(self, node: exp.Anonymous) -> str:
        name = node.name.lower()
        arguments = [self.name(part) for part in node.expressions]
        least, default = _DEFAULTS.get(name, (0, ""))
        if len(arguments) < least:
            arguments.append(default)
        if name in ("lag", "lead") and len(arguments) == 2:
            arguments.append("NULL")
        if name in _TYPES:
            return arguments[0]
        if name in ("isnull", "isnotnull"):
            return f"({arguments[0]} IS {'NOT ' * (name == 'isnotnull')}NULL)"
        if name == "if":
            return f"(IF({', '.join(arguments)}))"
        return f"{name.upper() if name in _IN_CAPITALS else name}({', '.join(arguments)})"

    def _filter(self, node: exp.Filter) -> str:
        return f"{self.name(node.this)} FILTER (WHERE {self.name(node.expression.this)})"

    def _window(self, node: exp.Window) -> str:
        by, order, spec = (node.args.get(key) for key in ("partition_by", "order", "spec"))
        parts = [f"PARTITION BY {self._all(by)}"] if by else []
        if order:
            parts.append("ORDER BY " + ", ".join(self._key(key) for key in order.expressions))
        parts.append(self._frame(node, spec))
        return f"{self.name(node.this)} OVER ({' '.join(parts)})"

    def _key(self, key: exp.Ordered) -> str:
        way = "DESC" if key.args.get("desc") else "ASC"
        nulls = "FIRST" if key.args.get("nulls_first") else "LAST"
        return f"{self.name(key.this)} {way} NULLS {nulls}"

    def _frame(self, node: exp.Window, spec: exp.WindowSpec | None) -> str:
        function = node.this.name.lower()
        start, end = "UNBOUNDED PRECEDING", "CURRENT ROW"
        kind = "ROWS" if function in _RANKING else "RANGE"
        if function in ("lag", "lead"):
            _refuse(node)
        if spec:
            kind = str(spec.args["kind"]).upper()
            start, end = (self._edge(spec, side) for side in ("start", "end"))
        elif not node.args.get("order"):
            kind, end = "ROWS", "UNBOUNDED FOLLOWING"
        return f"{kind} BETWEEN {start} AND {end}"

    def _edge(self, spec: exp.WindowSpec, side: str) -> str:
        edge, way = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
        if edge is None or str(edge).upper() == "CURRENT ROW":
            return "CURRENT ROW"
        if isinstance(edge, exp.Literal):
            return f"{edge.name} {way}"
        return f"UNBOUNDED {way}"


def _refuse(node: exp.Expr) -> NoReturn:
    refuse(node, f"the name that Spark gives {node.sql('spark')} (write it AS a name)")


def _not(node: exp.Expr, name: str) -> str:
    return f"(NOT {name})" if node.args.get("negate") else name
