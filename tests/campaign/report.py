"""Sums up the rows of a campaign: by group and step, and failures by cause."""

import re
from collections import Counter, defaultdict


def cause_of(message):
    """A message without the parts that differ between files."""
    message = re.sub(r"^\S+:\d+(:\d+)?:\s*", "", message)
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "'..'", message)
    return re.sub(r"\d+", "N", message)[:120]


def summarise(rows):
    groups = defaultdict(Counter)
    outcomes = defaultdict(Counter)  # (group, step) -> outcome -> files
    causes = defaultdict(list)       # (step, outcome, cause) -> files
    order = []
    for row in sorted(rows, key=lambda row: row["path"]):
        counts = groups[row["group"]]
        counts["files"] += 1
        counts["seconds"] += row["seconds"]
        refused = any(step["outcome"] == "refused by ptxas" for step in row["steps"])
        counts["refused by ptxas" if refused else "accepted"] += 1
        counts["failed"] += row["failed"]
        for step in row["steps"]:
            if step["step"] not in order:
                order.append(step["step"])
            outcomes[row["group"], step["step"]][step["outcome"]] += 1
            if step["failed"]:
                causes[step["step"], step["outcome"], cause_of(step["message"])].append(row["path"])
    return {"groups": groups, "outcomes": outcomes, "causes": causes, "order": order}


def table_of(summary):
    """Rows: group, step, outcome, files."""
    for group in sorted(summary["groups"]):
        for key in ("files", "refused by ptxas", "accepted", "failed"):
            yield group, "all", key, summary["groups"][group][key]
        for step in summary["order"]:
            for outcome, count in summary["outcomes"].get((group, step), Counter()).most_common():
                yield group, step, outcome, count


def print_summary(summary, path):
    if path:
        with open(path, "w") as file:
            file.write("group\tstep\toutcome\tfiles\n")
            for row in table_of(summary):
                file.write("\t".join(str(cell) for cell in row) + "\n")
    total = Counter()
    for group in summary["groups"].values():
        total.update(group)
    for step in summary["order"]:
        counts = Counter()
        for (_group, name), outcomes in summary["outcomes"].items():
            if name == step:
                counts.update(outcomes)
        print(f"{step:34} " + ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    if summary["causes"]:
        print("failures by cause:")
    for (step, outcome, cause), files in sorted(summary["causes"].items(), key=lambda item: -len(item[1])):
        print(f"  {len(files):5} {step}: {outcome}: {cause}  [{files[0]}]")
    print(f"{total['files']} files, {total['accepted']} accepted by ptxas, {total['failed']} with a failure")
    return 1 if total["failed"] else 0
