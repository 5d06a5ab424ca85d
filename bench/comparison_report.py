"""Tables 4 to 9 and charts 1 to 7 of document S0, with its figures beside what comparison.py measured."""

import math
import os
import statistics

import report

PARTIES = ("sava-http", "sava-resp", "redis", "list", "list-direct", "mariadb-document",
           "mariadb-counter", "sqlite-document", "sqlite-counter")
# The document's figures: its counter, and its database.
TOP_COUNTER = {("100000x100x5", 20): 0.2, ("100000x100x5", 50): 0.2, ("100000x100x5", 100): 0.3,
               ("100x100000x5", 20): 0.2, ("100x100000x5", 200): 0.2, ("100x100000x5", 2000): 0.2}
TOP_DATABASE = {("1000x1000x10", 20): 474, ("1000x1000x10", 1000): 435,
                ("100000x100x5", 20): 16_764, ("100000x100x5", 200): 14_349,
                ("100x100000x5", 20): 17_274, ("100x100000x5", 1000): 16_029}
DELETE_DATABASE = {"100x100x5": 63.8, "10000x100x5": 297.5, "100000x100x5": 14_340.8,
                   "100x10000x5": 331.9, "100x100000x5": 13_452.3}
MEMORY_COUNTER = {"100x100x10": 0.46, "10000x100x5": 46.85, "100000x100x5": 244.2,
                  "100x10000x5": 45.79, "100x100000x5": 233.6}
DISK_COUNTER = {"100x100x10": 0.417, "10000x100x5": 42.47, "100000x100x5": 414.75,
                "100x10000x5": 42, "100x100000x5": 403.05}
DISK_DATABASE = {"100x100x5": 80, "10000x100x5": 464, "100000x100x5": 2512, "100x10000x5": 336,
                 "100x100000x5": 2576}
# What its charts of inserts show, as lines: (ms, words). Its charts have no figures; these are read off.
INSERT_DOCUMENT = {"100x100x10": [(1.0, "its service: below 1 ms")],
                   "100x100000x5": [(1.0, "its service: below 1 ms"), (20.0, "its database: about 20 ms"),
                                    (100.0, "its list: up to 100 ms")]}
MEGABYTE = 1e6

COLOURS = {"sava-http": "#2f7d32", "sava-resp": "#7cb342", "redis": "#b03030", "list": "#6a3d9a",
           "list-direct": "#b39ddb", "mariadb-document": "#c07818", "mariadb-counter": "#e6b800",
           "sqlite-document": "#2860a8", "sqlite-counter": "#64b5f6"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 76, 150, 44, 50


def number(value):
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"


class Table:
    """Rows by set (and more), a column for the document, one for each party that was measured."""

    def __init__(self, results):
        self.results = {(one["set"], one["party"]): one for one in results}
        self.sets = list(dict.fromkeys(one["set"] for one in results))
        measured = {one["party"] for one in results}
        self.parties = [party for party in PARTIES if party in measured]

    def lines(self, heads, rows):
        """rows: (cells in front, value of a result)."""
        out = ["| " + " | ".join([*heads, *self.parties]) + " |",
               "|" + "---|" * (len(heads) + len(self.parties))]
        for front, name, value in rows:
            cells = [number(value(self.results[name, party])) if (name, party) in self.results else "–"
                     for party in self.parties]
            if any(cell != "–" for cell in cells):
                out.append("| " + " | ".join([*front, *cells]) + " |")
        return [*out, ""]

    def tops(self):
        rows = []
        for name in self.sets:
            for k in sorted({int(k) for one in self.results.values() if one["set"] == name
                             for k in one["top_ms"]}):
                front = (name.replace("x", " × "), str(k), number(TOP_COUNTER.get((name, k))),
                         number(TOP_DATABASE.get((name, k))))
                rows.append((front, name, lambda one, k=k: one["top_ms"].get(str(k))))
        return self.lines(("set", "K", "its counter", "its database"), rows)

    def simple(self, heads, columns, value):
        rows = [((name.replace("x", " × "), *(number(column.get(name)) for column in columns)), name,
                 value) for name in self.sets]
        return self.lines(("set", *heads), rows)


def axis_text(x, y, words, anchor="middle", colour="#333333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12" '
            f'fill="{colour}">{words}</text>')


def thinned(series):
    """The same in a hundred stretches or so, which is what a picture shows."""
    step = max(1, len(series["median"]) // 100)
    places = range(0, len(series["median"]), step)
    return {"size": series["size"] * step,
            "median": [statistics.median(series["median"][at : at + step]) for at in places],
            "largest": [max(series["largest"][at : at + step]) for at in places]}


def chart(results, title):
    """The time of each insert: medians as a line, the largest of each stretch as points."""
    document = INSERT_DOCUMENT.get(results[0]["set"], [])
    most = max(one["timed"] for one in results)
    values = [value for one in results for key in ("median", "largest") for value in one["series"][key]]
    values += [value for value, _ in document]
    low = math.floor(math.log10(max(1e-3, min(values))))
    high = max(low + 1, math.ceil(math.log10(max(values))))

    def x_of(at):
        return LEFT + at / most * (WIDTH - LEFT - RIGHT)

    def y_of(value):
        share = (math.log10(max(value, 1e-3)) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif"><rect width="100%" height="100%" fill="#ffffff"/>',
           axis_text(LEFT, 22, title, "start")]
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        out.append(axis_text(LEFT - 6, y + 4, f"{10.0**power:g} ms", "end"))
    for part in range(5):
        out.append(axis_text(x_of(most * part / 4), HEIGHT - BOTTOM + 18, f"{most * part // 4:,}"))
    out.append(axis_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "insert"))
    for value, words in document:
        y = y_of(value)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#333333" '
                   'stroke-dasharray="6 4"/>')
        out.append(axis_text(WIDTH - RIGHT - 4, y - 4, words, "end"))
    for at, one in enumerate(results):
        colour = COLOURS[one["party"]]
        series = thinned(one["series"])
        places = [(number_ + 0.5) * series["size"] for number_ in range(len(series["median"]))]
        for place, value in zip(places, series["largest"]):
            out.append(f'<circle cx="{x_of(min(place, most)):.1f}" cy="{y_of(value):.1f}" r="1.3" '
                       f'fill="{colour}" fill-opacity="0.45"/>')
        line = " ".join(f"{x_of(min(place, most)):.1f},{y_of(value):.1f}"
                        for place, value in zip(places, series["median"]))
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        out.append(axis_text(WIDTH - RIGHT + 8, TOP + 16 * at + 8, one["party"], "start", colour))
    return "\n".join([*out, "</svg>"]) + "\n"


def body(results, charts):
    table = Table(results)
    machine = report.machine().split(", Linux", maxsplit=1)[0]
    out = ["## Measured", "",
           f"On {machine}. Times are ms, sizes MB (10^6 bytes). The client is a Python program on the "
           "same machine with one connection: its own part of each time is some 0.03 ms, and more where it reads "
           "long answers in RESP (sava-resp, redis), piece by piece.", "",
           "### One insert, the median (charts 1 to 7 show each)", ""]
    out += table.simple((), (), lambda one: one["insert_ms"]["p50"])
    out += ["### One insert, 99.9 of 100 are no longer", ""]
    out += table.simple((), (), lambda one: one["insert_ms"]["p999"])
    out += ["### The first insert of an associator, the median (the upper points of charts 3 and 5)", ""]
    out += table.simple((), (), lambda one: one.get("first_ms"))
    out += ["### The most frequent K (tables 4 and 7)", "", *table.tops()]
    out += ["### What was left, in bulk, s", ""]
    out += table.simple((), (), lambda one: one["bulk_s"] or None)
    out += ["### Delete of one associator (table 8)", ""]
    out += table.simple(("its database",), (DELETE_DATABASE,), lambda one: one["delete_ms"])
    out += ["### Memory (table 5): what the processes grew by", ""]
    out += table.simple(("its counter",), (MEMORY_COUNTER,), lambda one: one["memory"] / MEGABYTE)
    out += ["### Disk (tables 6 and 9)", ""]
    out += table.simple(("its counter", "its database"), (DISK_COUNTER, DISK_DATABASE),
                        lambda one: one["disk"] / MEGABYTE)
    out += ["### From the start of the program to its first answer, with the data there (7.3), s", ""]
    out += table.simple((), (), lambda one: one["start_s"])
    out += ["### Associations sent, of them one by one", ""]
    out += table.simple((), (), lambda one: one["associations"])
    out += [f"Up to {max(one['timed'] for one in results):,} of each set went in one by one.", ""]
    out += ["### Time of each insert", "",
            "Lines are medians of stretches of inserts, points the largest time in each stretch; the scale is "
            "logarithmic. Dashed: what the document's charts 1, 2 and 6 show, which have no figures.", ""]
    out += [f"![{name}]({path})" for name, path in charts]
    return "\n".join(out) + "\n"


def draw(results, folder, below):
    """One chart for each set; their (name, path below the page)."""
    os.makedirs(folder, exist_ok=True)
    charts = []
    for name in dict.fromkeys(one["set"] for one in results):
        of_set = [one for one in results if one["set"] == name]
        of_set.sort(key=lambda one: PARTIES.index(one["party"]))
        title = f"time of each insert, {name.replace('x', ' × ')}"
        with open(os.path.join(folder, f"insert-{name}.svg"), "w", encoding="utf-8") as file:
            file.write(chart(of_set, title))
        charts.append((title, f"{below}insert-{name}.svg"))
    return charts


def write(results, folder):
    charts = draw(results, folder, "")
    with open(os.path.join(folder, "report.md"), "w", encoding="utf-8") as file:
        file.write("# Document S0's comparison\n\n" + body(results, charts))


MARK = "<!-- What follows is written by `./dev bench comparison --docs`. -->\n"


def write_docs(results, documents):
    """Replaces what stands behind the mark in s0-comparison.md."""
    charts = draw(results, os.path.join(documents, "s0"), "s0/")
    path = os.path.join(documents, "s0-comparison.md")
    with open(path, encoding="utf-8") as file:
        head = file.read().split(MARK)[0]
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + MARK + "\n" + body(results, charts))
