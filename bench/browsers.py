"""Five browsers that look at a console, as a process that takes only what processors have left.

    python -m bench.browsers URL TOKEN PAGE…

Users' browsers run on their own machines. Here they share the processors with what is measured,
so all of Chromium runs under the policy SCHED_IDLE, which a process cannot leave by `nice`.
It prints a line when all pages are drawn; at a line of input, what each page received and when.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.console.browser import RunningConsole, chromium, go, page_of

_NOTE = """(() => {
  window.received = [];
  const ask = window.fetch;
  window.fetch = async (path, options) => {
    const answer = await ask(path, options);
    if (path !== "/api/overview" || !answer.ok) return answer;
    const text = await answer.text(), at = Date.now();
    const batches = JSON.parse(text).status.datasets.map((each) => [each.name, each.batch]);
    setTimeout(() => requestAnimationFrame(() =>
      window.received.push([at, Date.now(), Object.fromEntries(batches)])), 0);
    return new Response(text, { status: 200, headers: answer.headers });
  };
})()"""
"""When an answer came, when the browser was about to paint after it, and the batches it shows."""


def main(url: str, token: str, *places: str) -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    console = RunningConsole(Path.cwd(), url, token, token)
    with chromium() as browser, ExitStack() as stack:
        pages = []
        for place in places:
            page, _ = stack.enter_context(page_of(browser, console))
            page.evaluate(_NOTE)
            go(page, place)
            pages.append(page)
        print("drawn", flush=True)
        sys.stdin.readline()
        print(json.dumps([page.evaluate("window.received") for page in pages]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
