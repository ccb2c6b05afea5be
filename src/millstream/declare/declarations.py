"""What users declare: decorators that return the function unchanged, and queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from millstream.declare.dataset import (
    alert_of,
    model_of,
    serve_of,
    source_of,
    sql_table_of,
    sql_view_of,
    stream_of,
    table_of,
    view_of,
)
from millstream.declare.function import location_of, location_of_caller
from millstream.declare.notebook import execution
from millstream.declare.register import Declaration, Register
from millstream.model.reaction import REACTION_KINDS, Reaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.declare.options import (
        AlertOptions,
        FunctionalOptions,
        ModelOptions,
        ServeOptions,
        SourceOptions,
        TableOptions,
        ViewOptions,
    )
    from millstream.model.dataset import Dataset

Function = TypeVar("Function", bound="Callable[..., Any]")


class Declarations:
    """Sources, views, tables and answers as they are declared, one after the other."""

    def __init__(self) -> None:
        self._register = Register()
        self._reactions: dict[str, Reaction] = {}

    @overload
    def source(self, function: Function, /) -> Function: ...
    @overload
    def source(
        self, function: None = None, /, **options: Unpack[SourceOptions]
    ) -> Callable[[Function], Function]: ...
    def source(self, function: Any = None, /, **options: Any) -> Any:
        """Declare where rows come from: the function returns a connector."""
        return self._decorated(function, source_of, options)

    @overload
    def view(self, function: Function, /) -> Function: ...
    @overload
    def view(
        self, function: None = None, /, **options: Unpack[ViewOptions]
    ) -> Callable[[Function], Function]: ...
    def view(self, function: Any = None, /, **options: Any) -> Any:
        """Declare a named query, inlined into every query that reads it."""
        return self._decorated(function, view_of, options)

    @overload
    def table(self, function: Function, /) -> Function: ...
    @overload
    def table(
        self, function: None = None, /, **options: Unpack[TableOptions]
    ) -> Callable[[Function], Function]: ...
    def table(self, function: Any = None, /, **options: Any) -> Any:
        """Declare a query whose answer is kept as a Delta table."""
        return self._decorated(function, table_of, options)

    def serve(
        self, function: None = None, /, **options: Unpack[ServeOptions]
    ) -> Callable[[Function], Function]:
        """Declare a query whose answer goes to sinks."""
        return self._decorated(function, serve_of, options)

    def alert(
        self, function: None = None, /, **options: Unpack[AlertOptions]
    ) -> Callable[[Function], Function]:
        """Declare a query whose rows are sent to someone, each once in its outbox."""
        return self._decorated(function, alert_of, options)

    def model(
        self, function: None = None, /, **options: Unpack[ModelOptions]
    ) -> Callable[[Function], Function]:
        """Declare a model: the function returns the rows that it learns from."""
        return self._decorated(function, model_of, options)

    def stream(
        self, function: None = None, /, **options: Unpack[FunctionalOptions]
    ) -> Callable[[Function], Function]:
        """Declare a functional program: the function makes a DStream of DStreams.

        Its parameters are datasets, as DStreams of their rows; a batch has the rows of one interval
        of event time.
        """
        return self._decorated(function, stream_of, options)

    @overload
    def on(self, function: Function, /) -> Function: ...
    @overload
    def on(self, *kinds: str) -> Callable[[Function], Function]: ...
    def on(self, *kinds: Any) -> Any:
        """Declare a function that is called with each event of these kinds, in the driver.

        Without kinds, it is called with all of them. It runs beside the queries; what it raises is
        reported, and stops nothing.
        """
        if len(kinds) == 1 and callable(kinds[0]):
            return self.on()(kinds[0])

        def declared(function: Function) -> Function:
            # In a notebook, a function that is defined again takes the place of the earlier one.
            reaction = Reaction(kinds or REACTION_KINDS, function, location_of(function))
            self._reactions[function.__qualname__] = reaction
            return function

        return declared

    def sql(self, name: str, query: str, /, **options: Unpack[TableOptions]) -> None:
        """Declare a table by a query; the names after FROM are what it reads."""
        at = location_of_caller()
        self._declare(name, lambda: sql_table_of(name, query, at, options))

    def sql_view(self, name: str, query: str) -> None:
        """Declare a view by a query; the names after FROM are what it reads."""
        at = location_of_caller()
        self._declare(name, lambda: sql_view_of(name, query, at))

    def _decorated(
        self,
        function: Function | None,
        make: Callable[[Any, Any], Dataset],
        options: Mapping[str, Any],
    ) -> Callable[..., Any]:
        """Declare the function of a bare decorator; without one, give the decorator."""

        def register(function: Function) -> Function:
            if not callable(function):
                message = f"a function is decorated and options have names; got {function!r}"
                raise TypeError(message)
            name = options.get("name", function.__name__)
            self._declare(name, lambda: make(function, options))
            return function

        return register if function is None else register(function)

    def _declare(self, name: str, make: Callable[[], Dataset]) -> None:
        self._enter(Declaration.of(name, make, execution()))

    def _enter(self, entry: Declaration) -> None:
        self._register.enter(entry)
