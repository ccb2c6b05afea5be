from __future__ import annotations

from tests.graphs import graph, source, table

from millstream.cli.run import next_commands

SHOP = graph(source("orders"), table("sales", "orders"), table("best_items", "sales"))


def test_after_a_run_of_all_queries_the_last_table_and_the_batch_are_offered() -> None:
    ran = {"orders", "sales", "best_items"}

    assert list(next_commands(SHOP, "app.py", ran, selection=None)) == [
        "  millstream ledger app.py",
        '  millstream query app.py "SELECT * FROM best_items LIMIT 10"',
        "  millstream batch app.py --compare",
    ]


def test_after_a_run_of_some_queries_only_those_are_named() -> None:
    hints = list(next_commands(SHOP, "app.py", {"orders", "sales"}, selection=" --select +sales"))

    assert hints == [
        "  millstream ledger app.py",
        '  millstream query app.py "SELECT * FROM sales LIMIT 10"',
        "  millstream run app.py --select +sales --once     "
        "processes what is landed but not yet read",
    ]


def test_after_a_run_without_a_table_none_is_named() -> None:
    assert list(next_commands(SHOP, "app.py", {"orders"}, selection=None)) == [
        "  millstream ledger app.py"
    ]


def test_what_a_live_source_has_given_cannot_be_computed_again() -> None:
    live = graph(source("orders", live=True), table("sales", "orders"))

    hints = list(next_commands(live, "app.py", {"sales"}, selection=None))

    assert hints[-1] == '  millstream query app.py "SELECT * FROM sales LIMIT 10"'
