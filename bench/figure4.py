#!/usr/bin/env python3
"""Draws figure 4 of document S2: the rate of false positives over the number of items n for filters
of m bits, with the best k; lines by formula, points as measured.

    bench/figure4.py [TOOL] [OUT]      (build/release/sava_bench_filters, docs/documents/s2-figure4.svg)
"""

import math
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 110, 40, 50
MOST_ITEMS = 200
LEAST = 1e-8
COLOURS = {64: "#b03030", 512: "#c07818", 1024: "#2f7d32", 2048: "#2860a8", 4096: "#6a3d9a"}


def read_points(tool):
    text = subprocess.run([tool, "--figure"], stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in text.splitlines():
        m, n, k, formula, measured = line.split()
        yield int(m), int(n), int(k), float(formula), float(measured)


def x_of(n):
    return LEFT + n / MOST_ITEMS * (WIDTH - LEFT - RIGHT)


def y_of(rate):
    share = math.log10(max(rate, LEAST)) / math.log10(LEAST)
    return TOP + share * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor="middle", size=13, colour="#333333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}">{words}</text>')


def axes():
    out = []
    for n in range(0, MOST_ITEMS + 1, 40):
        out.append(f'<line x1="{x_of(n):.1f}" y1="{TOP}" x2="{x_of(n):.1f}" '
                   f'y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        out.append(text(x_of(n), HEIGHT - BOTTOM + 18, str(n)))
    for power in range(0, -9, -1):
        y = y_of(10.0**power)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" '
                   'stroke="#e4e4e4"/>')
        out.append(text(LEFT - 8, y + 4, "1" if power == 0 else f"10^{power}", "end"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "items in the filter, n"))
    out.append(text(LEFT, 22, "rate of false positives with the best k: lines (1 − (1 − 1/m)^kn)^k, "
                    "points measured", "start"))
    return out


def curve(m, points):
    colour = COLOURS[m]
    shown = [(n, formula) for n, formula, _ in points if formula >= LEAST]
    out = []
    if shown:
        path = " ".join(f"{x_of(n):.1f},{y_of(rate):.1f}" for n, rate in shown)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
    for n, formula, measured in points:
        # Below this too few of 400,000 questions are answered wrongly to say anything.
        if formula >= 1e-4 and measured > 0:
            out.append(f'<circle cx="{x_of(n):.1f}" cy="{y_of(measured):.1f}" r="3.2" '
                       f'fill="{colour}"/>')
    last = points[-1][1]
    out.append(text(WIDTH - RIGHT + 8, y_of(last) + (14 if last < LEAST else 4), f"m = {m}",
                    "start", colour=colour))
    return out


def main():
    tool = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        ROOT, "build/release/sava_bench_filters")
    target = sys.argv[2] if len(sys.argv) > 2 else os.path.join(
        ROOT, "docs/documents/s2-figure4.svg")
    curves = {}
    for m, n, _, formula, measured in read_points(tool):
        curves.setdefault(m, []).append((n, formula, measured))
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *axes()]
    for m, points in curves.items():
        lines += curve(m, points)
    lines.append("</svg>")
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print(target)


if __name__ == "__main__":
    main()
