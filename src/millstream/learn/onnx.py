"""Models in the format ONNX, which any library of machine learning writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.learn.pickled import digest_of

if TYPE_CHECKING:
    import pandas as pd

    from millstream.errors import Location

SUFFIX = ".onnx"
_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model as the bytes of its file; workers open it once."""

    content: bytes = field(repr=False)
    digest: str

    @staticmethod
    def read(path: str, at: Location) -> OnnxModel:
        """Read a model from a file.

        Raises:
            EXTRA_MISSING: The runtime is not installed.
            MODEL_UNREADABLE: There is no such file, or it is no model.
        """
        try:
            import onnxruntime  # type: ignore[import-untyped]  # noqa: F401
        except ModuleNotFoundError as error:
            raise fault(
                "EXTRA_MISSING", what="ms.score", module=str(error.name), extra="onnx"
            ) from error
        try:
            content = Path(path).read_bytes()
            model = OnnxModel(content, digest_of(content))
            _session(model)
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            instead = "export it again, in a version that the installed onnxruntime reads"
            raise fault("MODEL_UNREADABLE", at=at, model=path, why=why, instead=instead) from error
        return model

    def predict(self, rows: pd.DataFrame, *, is_yes_or_no: bool) -> tuple[list[Any], list[Any]]:
        """Predict rows of features; with each the probability, if the model has some."""
        session = _session(self)
        outputs = session.run(None, _inputs(session.get_inputs(), rows))
        predictions = outputs[0].reshape(len(rows), -1)[:, 0].tolist()
        if is_yes_or_no:
            predictions = [bool(value) for value in predictions]
        if len(outputs) < 2:
            return predictions, [None] * len(rows)
        return predictions, [_chance(row, is_yes_or_no=is_yes_or_no) for row in outputs[1]]


@lru_cache(maxsize=8)
def _session(model: OnnxModel) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Spark runs a task on each core.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.content, options, providers=["CPUExecutionProvider"])


def _inputs(wanted: list[Any], rows: pd.DataFrame) -> dict[str, Any]:
    """Return features as a model takes them: all in one tensor, or each by its name."""
    if len(wanted) == 1 and wanted[0].name not in rows.columns:
        return {wanted[0].name: rows.to_numpy(_TYPES.get(wanted[0].type))}
    return {
        one.name: rows[one.name].to_numpy(_TYPES.get(one.type)).reshape(-1, 1) for one in wanted
    }


def _chance(row: Any, *, is_yes_or_no: bool) -> float:
    """Return the probability of yes, or of the likeliest class: of a tensor, or of a map."""
    values = [*row.values()] if isinstance(row, dict) else row.tolist()
    return float(values[-1] if is_yes_or_no else max(values))
