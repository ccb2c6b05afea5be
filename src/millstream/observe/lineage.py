"""What an app reads and writes, for OpenLineage: a job for each query, a run of it for each run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, UUID, uuid5

from deltalake import DeltaTable
from deltalake.schema import PrimitiveType
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    column_lineage_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
    source_code_location_job,
)

from millstream.check.tables import stored_inputs
from millstream.lake.log import is_table
from millstream.model.dataset import Serve, Source, Table
from millstream.model.schema import RESERVED_PREFIX
from millstream.observe.column_lineage import column_inputs
from millstream.observe.record import BatchRecord, EventRecord, RunRecord
from millstream.settings import __version__

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.model.graph import Graph
    from millstream.observe.history_writer import Record

_PRODUCER = f"millstream/{__version__}"


class LineageExporter:
    """Sends the begin and the end of each query, to where the environment says."""

    def __init__(
        self, graph: Graph, home: Home, run: RunRecord, client: OpenLineageClient | None = None
    ) -> None:
        self._graph, self._home, self._run = graph, home, run
        self._client = client or OpenLineageClient()
        self._rows: dict[str, int] = {}
        self._failed: dict[str, EventRecord] = {}
        for name in self._queries:
            self._emit(name, RunState.START, run.started_at)

    def export(self, record: Record) -> None:
        """Note what a query has written or failed of, until the run ends."""
        if isinstance(record, BatchRecord):
            rows = self._rows.get(record.dataset, 0) + record.output
            self._rows[record.dataset] = rows
        elif isinstance(record, EventRecord) and record.kind == "query_failed":
            self._failed[record.dataset] = record

    def close(self) -> None:
        """Send the end of each query."""
        for name in self._queries:
            state = RunState.FAIL if name in self._failed else RunState.COMPLETE
            self._emit(name, state, datetime.now(UTC))
        self._client.close()

    @property
    def _queries(self) -> tuple[str, ...]:
        declared = self._graph.ordered
        return tuple(d.name for d in declared if isinstance(d, Source | Table | Serve))

    def _emit(self, name: str, state: RunState, at: datetime) -> None:
        dataset = self._graph.datasets[name]
        reads = [self._input(read) for read in stored_inputs(self._graph, name)]
        if isinstance(dataset, Source):
            kind = type(dataset.connector).__name__.lower()
            reads = [InputDataset(namespace=f"{kind}://", name=name)]
        self._client.emit(
            RunEvent(
                eventTime=at.isoformat(),
                producer=_PRODUCER,
                run=self._run_of(name),
                job=self._job(name),
                eventType=state,
                inputs=reads,
                outputs=[self._output(name, is_over=state is not RunState.START)],
            )
        )

    def _run_of(self, name: str) -> Run:
        facets: dict[str, RunFacet] = {}
        if name in self._failed:
            what = self._failed[name].what or self._failed[name].detail
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(what, "python")
        return Run(runId=str(self._id(name)), facets=facets)

    def _id(self, name: str) -> UUID:
        return uuid5(NAMESPACE_URL, f"{self._home.path}/{self._run.id}/{name}")

    def _job(self, name: str) -> Job:
        at = self._graph.datasets[name].at
        return Job(
            namespace=self._graph.app,
            name=name,
            facets={
                "jobType": job_type_job.JobTypeJobFacet("STREAMING", "MILLSTREAM", "QUERY"),
                "sourceCodeLocation": source_code_location_job.SourceCodeLocationJobFacet(
                    "git", f"{at.file}#L{at.line}", version=self._run.git_commit
                ),
            },
        )

    def _input(self, name: str) -> InputDataset:
        return InputDataset(namespace="file", name=str(self._home.table(name)))

    def _output(self, name: str, *, is_over: bool) -> OutputDataset:
        if isinstance(self._graph.datasets[name], Serve):
            return OutputDataset(namespace=self._graph.app, name=name)
        table = self._home.table(name)
        output = OutputDataset(namespace="file", name=str(table))
        if is_over:
            rows = self._rows.get(name, 0)
            facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rows)
            output.outputFacets = {"outputStatistics": facet}
        if is_over and (schema := self._schema(name)):
            fields = [
                schema_dataset.SchemaDatasetFacetFields(column, kind)
                for column, kind in schema.items()
            ]
            output.facets = {"schema": schema_dataset.SchemaDatasetFacet(fields)}
            if columns := self._columns(name):
                traced = column_lineage_dataset.ColumnLineageDatasetFacet(columns)
                output.facets["columnLineage"] = traced
        return output

    def _schema(self, name: str) -> dict[str, str]:
        """Return the types of a table's columns, without our own; none before its first batch."""
        table = self._home.table(name)
        if not is_table(table):
            return {}
        fields = DeltaTable(str(table)).schema().fields
        return {f.name: _type(f.type) for f in fields if not f.name.startswith(RESERVED_PREFIX)}

    def _columns(self, name: str) -> dict[str, column_lineage_dataset.Fields]:
        names = (name, *stored_inputs(self._graph, name))
        schemas = {each: self._schema(each) for each in names}
        return {
            column: column_lineage_dataset.Fields(
                [
                    column_lineage_dataset.InputField("file", str(self._home.table(read)), field)
                    for read, field in inputs
                ]
            )
            for column, inputs in column_inputs(self._graph, name, schemas).items()
        }


def _type(kind: object) -> str:
    """Write a type: the name of a simple one, else Delta's JSON."""
    return str(getattr(kind, "type", kind)) if isinstance(kind, PrimitiveType) else str(kind)
