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
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#b8a800", "#808080"]
MARKS = "osD^vP*X"
# Colours of CPI stacks, those of the pages of kernels (Paul Tol's "light" colours and four more).
STACK = ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00", "#b79bd1", "#cfd4d9",
         "#d0a37c", "#e8a0dc"]
LINES = "#888888"  # axes; visible on light and dark pages
FIXED_BLACK = "#010101"  # text on coloured backgrounds; the style recolours other black text
STYLE = """:root { color-scheme: light dark; --ink: #1b1f24; --page: #fff }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --page: #0d1117 } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: var(--ink);
background: var(--page) } svg { max-width: 100%; min-width: 34em; height: auto } svg text { fill: var(--ink) }
.scroll { overflow-x: auto }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: right; vertical-align: top }
td, p { overflow-wrap: anywhere }
td:first-child, th:first-child { text-align: left } th { border-bottom: 1px solid #888 }"""


def _pyplot():
    try:
        import matplotlib
    except ImportError:
        raise SweepError("plots need matplotlib") from None
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "ptxrewrite",  # makes the same page for the same table
        "svg.fonttype": "none", "figure.facecolor": "none", "axes.facecolor": "none", "legend.framealpha": 0,
        "axes.edgecolor": LINES, "xtick.color": LINES, "ytick.color": LINES, "xtick.labelcolor": "black",
        "ytick.labelcolor": "black", "hatch.color": "#555555", "hatch.linewidth": 0.6})
    from matplotlib import pyplot
    return pyplot


def _svg(figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    _pyplot().close(figure)
    text = out.getvalue()
    return f"<div class=\"scroll\">{text[text.index('<svg'):]}</div>"


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


def _means(sums) -> Tuple[int, Dict[Tuple[str, str], Tuple[float, float]]]:
    """us and uJ of each machine and pipeline, as geometric means over the launches that all of them have, and how many
    launches those are."""
    by_version: Dict[Tuple[str, str], Dict[Tuple[str, str], Row]] = defaultdict(dict)
    for (launch, size, machine, passes), total in sums.items():
        if total["seconds"] > 0 and total["joule"] > 0:
            by_version[machine, passes][launch, size] = total
    common = set.intersection(*(set(found) for found in by_version.values())) if by_version else set()

    def mean(found, what):
        return 1e6 * math.exp(sum(math.log(found[one][what]) for one in common) / len(common))

    return len(common), {version: (mean(found, "seconds"), mean(found, "joule"))
                         for version, found in sorted(by_version.items()) if common}


def _pareto_figure(sums) -> str:
    """All machines, and each machine relative to its original: on one scale, points of a machine cover each other."""
    launches, means = _means(sums)
    if not means:
        return "<p>No energy is known, or no launch has a result for all machines and pipelines.</p>"
    pyplot = _pyplot()
    pipelines = sorted({passes for _, passes in means})
    look = {passes: (MARKS[number % len(MARKS)], COLOURS[number % len(COLOURS)])
            for number, passes in enumerate(pipelines)}
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    machines = sorted({machine for machine, _ in means})
    for (machine, passes), point in means.items():
        axes.plot(*point, look[passes][0], color=look[passes][1], markersize=5)
    for machine in machines:
        right = max((point for (one, _), point in means.items() if one == machine))
        axes.annotate(machine, right, xytext=(8, -3), textcoords="offset points")
    for passes in pipelines:
        axes.plot([], [], look[passes][0], color=look[passes][1], label=passes or "original")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.plot(*zip(*pareto(list(means.values()))), color=LINES, linewidth=1, zorder=0)
    axes.margins(x=0.12)
    axes.set(xscale="log", yscale="log", xlabel="time, us", ylabel="energy, uJ",
             title=f"geometric means of {launches} launches; the line joins the Pareto-optimal points")
    return _svg(figure) + _pareto_of_machines(means, machines, look)


def _pareto_of_machines(means, machines: List[str], look) -> str:
    machines = [machine for machine in machines if (machine, "") in means and len(look) > 1]
    if not machines:
        return ""
    pyplot = _pyplot()
    columns = min(2, len(machines))
    rows = (len(machines) + columns - 1) // columns
    figure, panels = pyplot.subplots(rows, columns, figsize=(4.6 * columns, 3.4 * rows), squeeze=False)
    for panel in panels.flat[len(machines):]:
        panel.set_visible(False)
    for panel, machine in zip(panels.flat, machines):
        base = means[machine, ""]
        points = {passes: (point[0] / base[0], point[1] / base[1]) for (one, passes), point in means.items()
                  if one == machine}
        front = pareto(list(points.values()))
        for passes, point in points.items():
            panel.plot(*point, look[passes][0], color=look[passes][1])
        named = set()
        for passes, point in points.items():  # equal points get one name
            if point in front and point not in named:
                named.add(point)
                panel.annotate(passes or "original", point, fontsize=8, xytext=(5, 5), textcoords="offset points")
        panel.plot(*zip(*front), color=LINES, linewidth=1, zorder=0)
        panel.axhline(1, color=LINES, linewidth=0.5, linestyle=":")
        panel.axvline(1, color=LINES, linewidth=0.5, linestyle=":")
        panel.margins(x=0.2, y=0.15)
        panel.set(title=machine, xlabel="time, to the original", ylabel="energy, to the original")
    figure.tight_layout()
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
                      color="white" if abs(value - 1) > 0.75 * reach else FIXED_BLACK)
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


def _versions_of_stacks(group: List[Row], most: int) -> List[Row]:
    """The original on each machine, and the pipelines with the largest differences in time."""
    base = {row["machine"]: row for row in group if not row["passes"]}

    def change(row):
        return abs(math.log(row["seconds"] / base[row["machine"]]["seconds"])) if row["machine"] in base else math.inf

    changed = sorted((row for row in group if row["passes"] and change(row) > 0.005), key=change, reverse=True)
    chosen = (list(base.values()) + changed)[:most] or group[:most]
    return sorted(chosen, key=lambda row: (row["machine"], row["passes"]))


def _stacks(rows: List[Row], most: int = 12) -> str:
    """CPI stacks of the slowest kernels, machines and pipelines side by side. A cause has the same colour in all of
    them; the less frequent causes repeat colours with a hatch."""
    kernels = defaultdict(list)
    for row in rows:
        kernels[row["launch"], row["size"], row["kernel"]].append(row)
    chosen = [(key, _versions_of_stacks(group, 16))
              for key, group in sorted(kernels.items(), key=lambda item: -max(row["seconds"] for row in item[1]))[:most]]

    def share(row, cause):
        return 100 * (row.get(cause) or 0) / (row["clocks"] or 1)

    names = sorted({name for _, group in chosen for row in group for name in row if name.startswith("stack.")})
    sums = {cause: sum(share(row, cause) for _, group in chosen for row in group) for cause in names}
    causes = sorted((cause for cause in names if sums[cause] > 0), key=lambda cause: -sums[cause])
    pyplot = _pyplot()
    pictures = []
    for (launch, size, kernel), group in chosen:
        figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.32 * len(group)))
        left = [0.0] * len(group)
        for number, cause in enumerate(causes):
            width = [share(row, cause) for row in group]
            if max(width) < 0.5:
                continue
            axes.barh(range(len(group)), width, left=left, color=STACK[number % len(STACK)], edgecolor=LINES,
                      linewidth=0.5, hatch=["", "////", "...."][number // len(STACK) % 3], label=cause[len("stack."):])
            left = [a + b for a, b in zip(left, width)]
        axes.set_yticks(range(len(group)), [f"{row['machine']} {row['passes'] or 'original'}, "
                                            f"{1e6 * row['seconds']:.3g} us" for row in group])
        axes.invert_yaxis()
        axes.set(xlabel="% of the clocks", title=f"{kernel} ({launch} {size})".strip())
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        pictures.append(_svg(figure))
    return "\n".join(pictures)


def _failures(rows: List[Row]) -> str:
    if not rows:
        return "<p>None.</p>"
    lines = "".join(f"<tr><td>{html.escape(row['launch'])}</td><td>{html.escape(row['machine'])}</td>"
                    f"<td>{html.escape(row['passes'])}</td><td>{html.escape((row['error'] or '')[:200])}</td></tr>"
                    for row in rows[:200])
    return ("<div class=\"scroll\"><table><tr><th>launch</th><th>machine</th><th>passes</th><th>error</th></tr>"
            f"{lines}</table></div>")


def write_page(results: Path, output: Path) -> None:
    rows = Store(results).table().to_pylist()
    scores = [row for row in rows if row["status"] == "ok" and row["tool"] == "score" and row.get("seconds")]
    failures = [row for row in rows if row["status"] != "ok"]
    if not scores:
        raise SweepError(f"{results}: no scores")
    sums = _sums(scores)
    sections = [("Time and energy", _pareto_figure(sums)), ("Machines and techniques", _heat_map(sums)),
                ("Sensitivity to parameters", _sensitivity(scores)), ("Clocks by cause", _stacks(scores)),
                (f"Failures ({len(failures)})", _failures(failures))]
    body = "\n".join(f"<h2>{title}</h2>\n{text}" for title, text in sections)
    points = len({row["key"] for row in rows})
    output.write_text(f"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sweep</title>"
                      f"<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>"
                      f"<body><h1>Sweep</h1><p>{points} points, {len(rows)} rows.</p>\n{body}</body></html>\n",
                      encoding="utf-8")
