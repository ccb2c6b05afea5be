from __future__ import annotations

from millstream.spark.arguments import note_arguments


def notes_of(call: object, *arguments: object) -> list[str]:
    assert callable(call)
    try:
        call(*arguments)
    except Exception as error:
        note_arguments(error)
        return getattr(error, "__notes__", [])
    return ["did not raise"]


def half(number: int) -> float:
    return quotient(number, divisor=0)


def quotient(number: int, divisor: int) -> float:
    return number / divisor


def test_an_error_says_what_the_innermost_function_of_the_user_was_called_with() -> None:
    assert notes_of(half, 7) == ["called with number=7, divisor=0"]


def test_long_arguments_are_cut_and_stay_on_one_line() -> None:
    [note] = notes_of(half, "a\nb" * 1_000)

    assert "\n" not in note
    assert len(note) < 300
