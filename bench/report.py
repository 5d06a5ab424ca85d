"""Rows of figures, how they are judged against their bars, and how they are written and printed.

A row is one figure of one benchmark. `bar` is the promised limit, `judged` says whether the bar is
held against the ratio to stock Redis or against the value itself, `sense` whether it is the most
("max") or the least ("min") allowed. A row without a bar is for information only.
"""

import dataclasses
import datetime
import json
import os
import platform


@dataclasses.dataclass
class Row:
    name: str
    value: float | None
    unit: str
    redis: float | None = None
    ratio: float | None = None
    bar: float | None = None
    judged: str = "value"
    sense: str = "max"
    pairs: int = 1
    note: str = ""
    details: dict = dataclasses.field(default_factory=dict)

    @property
    def ok(self):
        """True, False, or None for a row without a bar. A figure that is missing is not ok."""
        if self.bar is None:
            return None
        figure = self.ratio if self.judged == "ratio" else self.value
        if figure is None:
            return False
        return figure <= self.bar if self.sense == "max" else figure >= self.bar

    @property
    def bar_text(self):
        if self.bar is None:
            return ""
        sign = "≤" if self.sense == "max" else "≥"
        return f"{sign} {self.bar:g} {'×' if self.judged == 'ratio' else self.unit}".rstrip()


def machine():
    """A few words about the machine the figures were taken on."""
    model = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} x {model}, {memory_gb:.0f} GB, Linux {platform.release()}"


def write_json(path, rows, *, quick, redis_version):
    """Writes the rows of one benchmark as a JSON list, replacing what an earlier run left."""
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    where = machine()
    records = []
    for row in rows:
        records.append({
            "name": row.name, "value": _rounded(row.value), "unit": row.unit,
            "ratio": _rounded(row.ratio), "bar": row.bar, "ok": row.ok,
            "judged": row.judged, "sense": row.sense, "redis": _rounded(row.redis),
            "pairs": row.pairs, "note": row.note, "details": row.details,
            "quick": quick, "redis_version": redis_version, "machine": where, "date": date,
        })
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(records, file, indent=2, ensure_ascii=False)
        file.write("\n")
    os.replace(partial, path)


def _rounded(number):
    return number if number is None or isinstance(number, int) else float(f"{number:.6g}")


def _number(number):
    if number is None:
        return ""
    if isinstance(number, int) or number == int(number) and abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 100 else f"{number:.2f}"


def table(rows, *, markdown=False):
    """The rows as an aligned text table, or as a Markdown table."""
    head = ["figure", "Sava", "Redis", "unit", "ratio", "bar", "", "note"]
    verdict = {True: "ok", False: "MISSED", None: ""}
    cells = [head] + [
        [r.name, _number(r.value) or "-", _number(r.redis), r.unit,
         "" if r.ratio is None else f"{r.ratio:.3f}", r.bar_text, verdict[r.ok], r.note]
        for r in rows]
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in cells]
        lines.insert(1, "|---" * len(head) + "|")
        return "\n".join(lines)
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    right = (1, 2, 4)
    return "\n".join(
        "  ".join(c.rjust(widths[i]) if i in right else c.ljust(widths[i])
                  for i, c in enumerate(line)).rstrip()
        for line in cells)
