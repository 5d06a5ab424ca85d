#!/usr/bin/env python3
"""Chapters 3 and 5.1 of document S1, measured in process: sava_bench_frontier_document.

Each operation of the document's structures and of ours by itself, in the three scenarios, with the
power of n by which its time grows; the five files of chapter 5.1; other sets of commands.

    bench/frontier_document.py [PROGRAM] [FOLDER]
        prints the tables of docs/documents/s1.md, and draws figure 3 (FOLDER/s1-figure3.svg);
        PROGRAM may also be a file of what the program printed (FILE.csv)
"""

import csv
import math
import os
import subprocess
import sys

import harness
import report

LIMIT_SECONDS = 600
SCENARIOS = ("1", "2", "3")
# 3.1.4 of the document, for each scenario: what it says, and the power of Q = n, m or mn that is.
DOCUMENT = {
    "Construtor": (("O(1)", 0), ("O(1)", 0), ("O(1)", 0)),
    "Destrutor": (("O(n)", 1), ("O(m)", 1), ("O(mn)", 1)),
    "setOutput": (("O(1)", 0), ("O(1)", 0), ("O(1)", 0)),
    "AddUrl first": (("O(1)", 0), ("O(m)", 1), ("O(m)", 0.5)),
    "AddUrl last": (("O(n²)", 2), ("O(m)", 1), ("O(n²)", 1)),
    "EscalonaTudo": (("O(n)", 1), ("O(m)", 1), ("O(mn)", 1)),
    "EscalonaTudoBreadth": (None, None, None),
    "Escalona": (("O(n)", 1), ("O(m)", 1), ("O(mn)", 1)),
    "EscalonaBreadth": (None, None, None),
    "EscalonaHost": (("O(n)", 1), ("O(m)", 1), ("O(n)", 0.5)),
    "VerHost": (("O(n²)", 2), ("O(m)", 1), ("O(n²)", 1)),
    "ListaHosts": (("O(1)", 0), ("O(m)", 1), ("O(m)", 0.5)),
    "LimpaHost": (("O(n)", 1), ("O(m)", 1), ("O(n)", 0.5)),
    "LimpaTudo": (("O(n)", 1), ("O(m)", 1), ("O(mn)", 1)),
    "PesquisaHost": (("O(1)", 0), ("O(m)", 1), ("O(m)", 0.5)),
}
# 3.1.1 to 3.1.3.
TYPES = {
    "Fila Construtor": "O(1)", "Fila Destrutor": "O(n)", "Fila size": "O(1)", "Fila empty": "O(1)",
    "Fila push_back": "O(1)", "Fila pop_front": "O(1)", "Fila print": "O(n)", "Fila clear": "O(n)",
    "Lista Construtor": "O(1)", "Lista Destrutor": "O(n)", "Lista size": "O(1)",
    "Lista empty": "O(1)", "Lista get_item first": "Ω(1)", "Lista get_item last": "O(n)",
    "Lista set_item first": "Ω(1)", "Lista set_item last": "O(n)", "Lista push_front": "O(1)",
    "Lista push_back": "O(1)", "Lista insert_at first": "Ω(1)", "Lista insert_at last": "O(n)",
    "Lista pop_front": "O(1)", "Lista pop_back": "O(n)", "Lista remove_at first": "Ω(1)",
    "Lista remove_at last": "O(n)", "Lista find first": "Ω(1)", "Lista find none": "O(n)",
    "Lista print": "O(n)", "Lista clear": "O(n)",
    "Url Construtor padrao": "O(1)", "Url Construtor": "O(n)", "Url isValid": "O(n)",
    "Url print": "O(1)", "Url operator<<": "O(1)", "Url operator==": "O(n)",
    "Url GetProtocol": "O(1)", "Url GetHost": "O(1)", "Url GetPath": "O(1)", "Url GetDepth": "O(1)",
}


def measure(program, small):
    """{(part, name, scenario, side): [(n, seconds)...]}"""
    if program.endswith(".csv"):
        with open(program, encoding="ascii") as file:
            return read(file.read())
    if not os.path.exists(program):
        raise harness.BenchError(f"{program} is not there; build it first (./dev build)")
    arguments = [program, "--small"] if small else [program]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode:
        raise harness.BenchError(f"{program}: {done.stderr[-300:]}")
    return read(done.stdout)


def read(text):
    found = {}
    for row in csv.DictReader(text.splitlines()):
        key = (row["part"], row["name"], row["scenario"], row["side"])
        found.setdefault(key, []).append((int(row["n"]), float(row["seconds"])))
    return found


def exponent(points):
    """By which power of n the time grows, over the last two steps."""
    (small, before), (large, after) = points[max(0, len(points) - 3)], points[-1]
    return math.log(after / before) / math.log(large / small)


def growth_text(points):
    text = f"{exponent(points):.1f}"
    return "0.0" if text == "-0.0" else text


def time_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def at(points, n):
    return next(seconds for size, seconds in points if size == n)


def command_table(found):
    lines = ["| operation | scenario | document | their lists, here: time · growth | "
             "ours: time · growth |",
             "|---|---|---|---|---|"]
    for name, claims in DOCUMENT.items():
        for scenario, claim in zip(SCENARIOS, claims, strict=True):
            theirs = found["command", name, scenario, "lists"]
            mine = found["command", name, scenario, "ours"]
            n = theirs[-1][0]
            said = "–" if claim is None else claim[0]
            if claim is not None and scenario == "3" and claim[1] != 0:
                said += f": {claim[1]:g}"
            lines.append(
                f"| {name if scenario == '1' else ''} | {scenario} | {said} | "
                f"{time_text(theirs[-1][1])} · {growth_text(theirs)} | "
                f"{time_text(at(mine, n))} · {growth_text(mine)} |")
    return lines


def type_table(found):
    lines = ["| operation | document | here: time · growth |", "|---|---|---|"]
    for name, claim in TYPES.items():
        points = found["type", name, "0", "lists"]
        lines.append(f"| {name} | {claim} | {time_text(points[-1][1])} · {growth_text(points)} |")
    return lines


def file_table(found):
    lines = ["| commands | URLs | their lists, here | ours |", "|---|---|---|---|"]
    for (part, name, scenario, side), points in found.items():
        if part not in ("figure3", "mixed") or side != "lists":
            continue
        mine = found[part, name, scenario, "ours"]
        for (n, theirs), (_, own) in zip(points, mine, strict=True):
            lines.append(f"| {name} | {n} | {time_text(theirs)} | {time_text(own)} |")
    return lines


# ---- figure 3 ----

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 170, 40, 50
MOST_URLS = 550
LEAST_SECONDS, MOST_SECONDS = 1e-5, 1e0
# The text of the document has kept the figure's axes, from 0.08 to 0.28 s, and says that the curve
# is quadratic: drawn is the parabola between these ends.
THEIRS = ((114, 0.08), (514, 0.28))


def x_of(urls):
    return LEFT + urls / MOST_URLS * (WIDTH - LEFT - RIGHT)


def y_of(seconds):
    seconds = min(max(seconds, LEAST_SECONDS), MOST_SECONDS)
    share = math.log(seconds / LEAST_SECONDS) / math.log(MOST_SECONDS / LEAST_SECONDS)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def words(x, y, text, anchor="middle", colour="#333333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="13" '
            f'fill="{colour}">{text}</text>')


def paper_curve():
    (first, low), (last, high) = THEIRS
    factor = (high - low) / (last**2 - first**2)
    return [(n, low + factor * (n**2 - first**2)) for n in range(first, last + 1, 100)]


def draw(found):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for urls in range(0, MOST_URLS + 1, 100):
        x = x_of(urls)
        out.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        out.append(words(x, HEIGHT - BOTTOM + 18, str(urls)))
    for power in range(-5, 1):
        y = y_of(10.0**power)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        out.append(words(LEFT - 8, y + 4, time_text(10.0**power), "end"))
    out.append(words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "URLs"))
    out.append(words(LEFT, 22, "ADD_URLS, LISTA_HOSTS, ESCALONA_TUDO, LIMPA_TUDO: time in process",
                     "start"))
    for points, colour, dash, label in (
            (paper_curve(), "#777777", ' stroke-dasharray="6 4"', "the document (its machine)"),
            (found["figure3", "figure 3", "3", "lists"], "#b03030", "", "its lists, here"),
            (found["figure3", "figure 3", "3", "ours"], "#2860a8", "", "ours, here")):
        path = " ".join(f"{x_of(n):.1f},{y_of(seconds):.1f}" for n, seconds in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                   f'stroke-width="1.8"{dash}/>')
        if not dash:
            out += [f'<circle cx="{x_of(n):.1f}" cy="{y_of(seconds):.1f}" r="3" fill="{colour}"/>'
                    for n, seconds in points]
        out.append(words(x_of(points[-1][0]) + 10, y_of(points[-1][1]) + 4, label, "start", colour))
    out.append("</svg>")
    return "\n".join(out) + "\n"


# ---- as a benchmark ----


def run(session):
    program = os.path.join(os.path.dirname(os.path.abspath(session.server)),
                           "sava_bench_frontier_document")
    found = measure(program, session.quick)
    rows = []
    for n, seconds in found["figure3", "figure 3", "3", "ours"]:
        theirs = at(found["figure3", "figure 3", "3", "lists"], n)
        rows.append(report.Row(f"figure_3_{n}", seconds * 1e6, "µs",
                               note=f"in process; the document's lists: {theirs * 1e6:.0f} µs"))
    for (part, name, scenario, side), points in found.items():
        if part != "command":
            continue
        rows.append(report.Row(
            f"{name}_{scenario}_{side}".replace(" ", "_"), exponent(points), "power of n",
            note=f"{time_text(points[-1][1])} for {points[-1][0]} URLs",
            details={"points": points}))
    return rows


BENCHMARK = harness.Benchmark("frontier_document",
                              "the URL scheduler's operations, ours and the document's", run)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        harness.ROOT, "build/release/sava_bench_frontier_document")
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(harness.ROOT, "docs/documents")
    found = measure(program, False)
    with open(os.path.join(folder, "s1-figure3.svg"), "w", encoding="utf-8") as file:
        file.write(draw(found))
    for table in (file_table, command_table, type_table):
        print("\n".join(table(found)) + "\n")


if __name__ == "__main__":
    main()
