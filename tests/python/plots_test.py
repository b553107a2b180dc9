"""The page of a sweep: its figures are those of the table."""
import os
import re
import tempfile
from pathlib import Path

from ptxrewrite.sweep import Store, plots


def row(machine, passes, seconds, joule, **more):
    return {"key": f"{machine}{passes}", "tool": "score", "launch": "a.toml", "size": "", "machine": machine,
            "passes": passes, "kernel": "k", "status": "ok", "seconds": seconds, "clocks": 100.0, "joule": joule,
            "stack.issue": 60.0, "stack.wait: DRAM": 40.0, **more}


def test_front():
    assert plots.pareto([(3, 1), (1, 3), (2, 2), (2.5, 2.5), (3, 3)]) == [(1, 3), (2, 2), (3, 1)]


def test_page():
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        # By hand: the time at limit 8 is 3/4 of the time at 4, on the one machine that has both.
        store.add([row("gtx480", f"p(limit={limit})", seconds, 1e-3, **{"parameter.limit": limit})
                   for limit, seconds in (("4", 4e-6), ("8", 3e-6))])
        store.add([row("h200", "", 2e-6, 1e-3), row("h200", "r2d2", 1.6e-6, 9e-4), row("a100", "", 3e-6, 1e-3),
                   row("a100", "r2d2", 3e-6, 1e-3),
                   row("a100", "<b>", 1e-6, 1.0, status="failed", error="no <such> pass", key="x")])
        store.finish()
        page = Path(folder, "page.html")
        plots.write_page(Path(folder), page)
        text = page.read_text(encoding="utf-8")
        assert ">1.250</text>" in text and ">1.000</text>" in text  # 2 us over 1.6 us
        # All machines, machines with an original, heat map, sensitivity, stacks of one kernel.
        assert text.count("<svg") == 5 and "no &lt;such&gt; pass" in text and "<b>" not in text
        assert ">0.750</text>" in text
        # Stacks: both originals, and r2d2 on h200; on a100 r2d2 has the same time as the original.
        assert ">h200 original, 2 us</text>" in text and ">a100 original, 3 us</text>" in text
        assert ">h200 r2d2, 1.6 us</text>" in text and ">a100 r2d2, 3 us</text>" not in text
        assert not re.search(r"(?:src|href)=\"http", text)
        again = Path(folder, "again.html")
        plots.write_page(Path(folder), again)
        assert again.read_text(encoding="utf-8") == text and os.path.getsize(page) < 1_000_000
