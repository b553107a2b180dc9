"""One page with the plots of a sweep of scores: time and energy, machines against techniques, CPI stacks. The pictures are
SVG in the page, which needs nothing else."""
from __future__ import annotations

import html
import io
import math
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .plan import SweepError
from .store import Store

Row = Dict[str, Any]
# Distinguishable with colour blindness, too (Okabe and Ito 2008), and every version has its own mark.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#000000"]
MARKS = "osD^vP*X"
STYLE = """body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #222;
background: #fff } svg { max-width: 100%; height: auto } table { border-collapse: collapse } td, th { padding: .2em .8em;
text-align: right } td:first-child, th:first-child { text-align: left } th { border-bottom: 1px solid #888 }"""


def _pyplot():
    try:
        import matplotlib
    except ImportError:
        raise SweepError("plots need matplotlib") from None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ptxrewrite"  # makes the same page for the same table
    from matplotlib import pyplot
    return pyplot


def _svg(figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    _pyplot().close(figure)
    text = out.getvalue()
    return text[text.index("<svg"):]


def _sums(rows: List[Row]) -> Dict[Tuple[str, str, str, str], Row]:
    """Seconds and joule of each launch file by (launch, size, machine, passes): all kernels together."""
    sums: Dict[Tuple[str, str, str, str], Row] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        total = sums[row["launch"], row["size"], row["machine"], row["passes"]]
        total["seconds"] += row["seconds"]
        total["joule"] += row.get("joule") or 0
    return sums


def pareto(points: List[Tuple[float, float]]) -> List[Tuple[float, float]]:
    """Returns the points that no other point beats in both numbers, ordered by the first."""
    front: List[Tuple[float, float]] = []
    for point in sorted(points):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front


def _pareto_figure(sums) -> str:
    """Time and energy of each machine and pipeline, as geometric means over the launches that all of them have."""
    by_version: Dict[Tuple[str, str], Dict[Tuple[str, str], Row]] = defaultdict(dict)
    for (launch, size, machine, passes), total in sums.items():
        if total["seconds"] > 0 and total["joule"] > 0:
            by_version[machine, passes][launch, size] = total
    if not by_version:
        return "<p>No energy is known.</p>"
    common = set.intersection(*(set(found) for found in by_version.values()))
    if not common:
        return "<p>No launch has a result for all machines and pipelines.</p>"

    def mean(found, what):
        return math.exp(sum(math.log(found[one][what]) for one in common) / len(common))

    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(8, 5))
    pipelines = sorted({passes for _, passes in by_version})
    points = []
    for (machine, passes), found in sorted(by_version.items()):
        point = mean(found, "seconds") * 1e6, mean(found, "joule") * 1e6
        points.append(point)
        number = pipelines.index(passes) % len(MARKS)
        axes.plot(*point, MARKS[number], color=COLOURS[number])
        # Names of points on top of others would cover theirs: the legend identifies those by their marks.
        if all(abs(math.log(point[0] / other[0])) > 0.03 or abs(math.log(point[1] / other[1])) > 0.03
               for other in points[:-1]):
            axes.annotate(f"{machine} {passes}", point, fontsize=7, xytext=(4, 4), textcoords="offset points")
    for number, passes in enumerate(pipelines):
        axes.plot([], [], MARKS[number % len(MARKS)], color=COLOURS[number % len(COLOURS)], label=passes or "original")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.plot(*zip(*pareto(points)), color="#888", linewidth=1, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="time, us", ylabel="energy, uJ",
             title=f"geometric means of {len(common)} launches; the line joins what nothing beats in both")
    return _svg(figure)


def _heat_map(sums) -> str:
    """Geometric mean of the time without passes divided by the time with them."""
    ratios = defaultdict(list)
    for (launch, size, machine, passes), total in sums.items():
        base = sums.get((launch, size, machine, ""))
        if passes and base and total["seconds"] > 0 and base["seconds"] > 0:
            ratios[machine, passes].append(math.log(base["seconds"] / total["seconds"]))
    if not ratios:
        return "<p>No pipeline stands beside the original.</p>"
    machines, pipelines = (sorted({key[i] for key in ratios}) for i in (0, 1))
    pyplot = _pyplot()
    values = [[math.exp(sum(ratios[m, p]) / len(ratios[m, p])) if (m, p) in ratios else math.nan for p in pipelines]
              for m in machines]
    figure, axes = pyplot.subplots(figsize=(2.5 + 1.1 * len(pipelines), 1.5 + 0.5 * len(machines)))
    reach = max(0.01, *(abs(value - 1) for row in values for value in row if not math.isnan(value)))
    axes.imshow(values, cmap="PuOr_r", vmin=1 - reach, vmax=1 + reach, aspect="auto")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            axes.text(x, y, "-" if math.isnan(value) else f"{value:.3f}", ha="center", va="center",
                      color="white" if abs(value - 1) > 0.75 * reach else "black")
    axes.set_xticks(range(len(pipelines)), pipelines, rotation=30, ha="right")
    axes.set_yticks(range(len(machines)), machines)
    axes.set_title("times as fast as the original")
    return _svg(figure)


def _sensitivity(rows: List[Row]) -> str:
    """For each parameter with several values: the time relative to the first value's, as geometric means
    over the kernels that have both with all else equal."""
    pictures = []
    for name in sorted({name for row in rows for name in row if name.startswith("parameter.")}):
        times: Dict[Tuple[Any, ...], Dict[float, float]] = defaultdict(dict)
        others = sorted({one for row in rows for one in row if one.startswith("parameter.")} - {name})
        for row in rows:
            try:
                value = float(row.get(name) or "")
            except ValueError:
                continue
            # The pipeline's text contains the value, too: the text without it names the pipeline.
            pipeline = row["passes"].replace(f"={row[name]}", "=*")
            times[row["launch"], row["size"], row["kernel"], row["machine"], pipeline,
                  tuple(row.get(other) for other in others)][value] = row["seconds"]
        values = sorted({value for found in times.values() for value in found})
        if len(values) < 2:
            continue
        pyplot = _pyplot()
        figure, axes = pyplot.subplots(figsize=(8, 4))
        for number, machine in enumerate(sorted({key[3] for key in times})):
            line = []
            for value in values:
                both = [math.log(found[value] / found[values[0]]) for key, found in times.items()
                        if key[3] == machine and value in found and values[0] in found]
                line.append(math.exp(sum(both) / len(both)) if both else math.nan)
            axes.plot(values, line, MARKS[number % len(MARKS)] + "-", color=COLOURS[number % len(COLOURS)], label=machine)
            axes.annotate(f"{line[-1]:.3f}", (values[-1], line[-1]), fontsize=7, xytext=(4, 0), textcoords="offset points")
        axes.set(xlabel=name[len("parameter."):], ylabel=f"time, to that at {values[0]:g}")
        axes.legend(fontsize=8)
        pictures.append(_svg(figure))
    return "\n".join(pictures) or "<p>No parameter takes several numbers.</p>"


def _stacks(rows: List[Row], most: int = 12) -> str:
    """CPI stacks of the slowest kernels, machines and pipelines side by side."""
    kernels = defaultdict(list)
    for row in rows:
        kernels[row["launch"], row["size"], row["kernel"]].append(row)
    chosen = sorted(kernels.items(), key=lambda item: -max(row["seconds"] for row in item[1]))[:most]
    causes = sorted({name for _, group in chosen for row in group for name in row
                     if name.startswith("stack.") and (row[name] or 0) > 0})
    pyplot = _pyplot()
    pictures = []
    for (launch, size, kernel), group in chosen:
        group = sorted(group, key=lambda row: (row["machine"], row["passes"]))[:16]
        figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.32 * len(group)))
        left = [0.0] * len(group)
        for number, cause in enumerate(causes):
            width = [100 * (row.get(cause) or 0) / (row["clocks"] or 1) for row in group]
            if max(width) < 0.5:
                continue
            axes.barh(range(len(group)), width, left=left, color=COLOURS[number % len(COLOURS)], edgecolor="white",
                      hatch=["", "//", "..", "xx"][number // len(COLOURS) % 4], label=cause[len("stack."):])
            left = [a + b for a, b in zip(left, width)]
        axes.set_yticks(range(len(group)), [f"{row['machine']} {row['passes'] or 'original'}" for row in group])
        axes.invert_yaxis()
        axes.set(xlabel="% of the clocks", title=f"{kernel} ({launch} {size})".strip())
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
        pictures.append(_svg(figure))
    return "\n".join(pictures)


def _failures(rows: List[Row]) -> str:
    if not rows:
        return "<p>None.</p>"
    lines = "".join(f"<tr><td>{html.escape(row['launch'])}</td><td>{html.escape(row['machine'])}</td>"
                    f"<td>{html.escape(row['passes'])}</td><td>{html.escape((row['error'] or '')[:200])}</td></tr>"
                    for row in rows[:200])
    return f"<table><tr><th>launch</th><th>machine</th><th>passes</th><th>error</th></tr>{lines}</table>"


def write_page(results: Path, output: Path) -> None:
    rows = Store(results).table().to_pylist()
    scores = [row for row in rows if row["status"] == "ok" and row["tool"] == "score" and row.get("seconds")]
    failures = [row for row in rows if row["status"] != "ok"]
    if not scores:
        raise SweepError(f"{results}: no scores")
    sums = _sums(scores)
    sections = [("Time and energy", _pareto_figure(sums)), ("Machines and techniques", _heat_map(sums)),
                ("Sensitivity to parameters", _sensitivity(scores)), ("Where the clocks go", _stacks(scores)), (f"Failures ({len(failures)})", _failures(failures))]
    body = "\n".join(f"<h2>{title}</h2>\n{text}" for title, text in sections)
    points = len({row["key"] for row in rows})
    output.write_text(f"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sweep</title>"
                      f"<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>"
                      f"<body><h1>Sweep</h1><p>{points} points, {len(rows)} rows.</p>\n{body}</body></html>\n",
                      encoding="utf-8")
