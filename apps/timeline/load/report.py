"""Tables in the document's form with its figures beside ours, its figures as SVG, and JMeter's results."""

import csv
import os
import shutil
import subprocess

# Table 4.1 of the document: mean, minimum, maximum, p90, p95 in ms, requests a second.
DOCUMENT = {
    ("off", 10): (442.77, 52, 1163, 768.50, 972.70, 18.79),
    ("on", 10): (29.77, 9, 58, 58, 58, 280.37),
    ("off", 20): (985.88, 7, 2719, 2086, 2423.10, 17.17),
    ("on", 20): (41.77, 23, 63, 63, 63, 444.44),
    ("off", 40): (1674.60, 5, 5323, 3656.40, 3776.45, 19.83),
    ("on", 40): (57.99, 6, 116, 87.90, 98.80, 618.56),
    ("off", 80): (2927.84, 30, 8780, 6409.20, 7096.70, 22.90),
    ("on", 80): (90.86, 3, 293, 144, 176, 774.19),
    ("off", 160): (4360.20, 5, 14121, 9253.90, 10915.65, 30.07),
    ("on", 160): (159.20, 5, 472, 312.90, 373.95, 867.99),
}
DEBIAN_JMETER = "/usr/share/jmeter"
FIELDS = ("mean", "min", "max", "p90", "p95", "perSecond")


def chosen(rows, cache, cold, page):
    return {row["threads"]: row for row in rows
            if row["cache"] == cache and row["cold"] == cold and row["page"] == page}


def gain(off, on, field):
    if field == "perSecond":
        return on[field] / off[field] if off[field] else 0
    return off[field] / on[field] if on[field] else 0


def table(result, page, beside):
    out = ["| threads | cache | mean ms | min | max | p90 | p95 | requests/s |", "|---|---|---|---|---|---|---|---|"]
    off = chosen(result["rows"], "off", False, page)
    on = chosen(result["rows"], "on", False, page)
    for threads in sorted(off):
        for cache, row in (("off", off[threads]), ("on", on.get(threads))):
            if row is None:
                continue
            theirs = DOCUMENT.get((cache, threads), ()) if beside else ()
            cells = [f"{row[field]:.2f}" for field in FIELDS]
            cells = [f"{cell} ({other})" for cell, other in zip(cells, theirs)] or cells
            out.append(f"| {threads} | {cache} | " + " | ".join(cells) + " |")
    if off and on:
        last = max(set(off) & set(on))
        gains = {field: gain(off[last], on[last], field) for field in FIELDS}
        out.append("")
        out.append(f"Gain with {last} threads: mean {gains['mean']:.2f} ×, maximum {gains['max']:.2f} ×, "
                   f"p95 {gains['p95']:.2f} ×, requests a second {gains['perSecond']:.2f} ×.")
    cold = chosen(result["rows"], "on", True, page)
    if cold:
        out.append("")
        out.append("Cold, the cache on and empty: " + ", ".join(
            f"{threads} threads {row['mean']:.2f} ms (max {row['max']:.2f})" for threads, row in sorted(cold.items())))
    return out


def tables(test, results):
    out = []
    for result in results:
        for page in sorted({row["page"] for row in result["rows"]}):
            out.append(f"### {test}: {result['database']}, {result['layout']} layout, page {page}, "
                       f"store {result['store']}")
            out.append("")
            out.append(f"{result['users']} users, {result['posts']} posts, {result['follows']} followed; "
                       f"store memory {result['storeMemory'] / 1e6:.1f} MB."
                       + (" In brackets: the document's figures." if test == "http" else ""))
            out.append("")
            out += table(result, page, test == "http")
            out.append("")
    return "\n".join(out)


def figure(title, off, on, path):
    """Two lines over the number of threads, as the document draws them."""
    threads = sorted(set(off) | set(on))
    top = max(list(off.values()) + list(on.values()) + [0.001])
    def points(values):
        return " ".join(f"{70 + 480 * threads.index(t) / max(1, len(threads) - 1):.1f},{280 - 230 * values[t] / top:.1f}"
                        for t in threads if t in values)
    ticks = "".join(
        f'<text x="{70 + 480 * i / max(1, len(threads) - 1):.0f}" y="300" text-anchor="middle">{t}</text>'
        for i, t in enumerate(threads))
    scale = "".join(
        f'<line x1="70" x2="550" y1="{280 - 230 * i / 4}" y2="{280 - 230 * i / 4}" stroke="#ddd"/>'
        f'<text x="64" y="{284 - 230 * i / 4}" text-anchor="end">{top * i / 4:.1f}</text>' for i in range(5))
    with open(path, "w") as file:
        file.write(
            '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="340" font-family="sans-serif" font-size="12">'
            f'<rect width="600" height="340" fill="#fff"/><text x="70" y="24" font-size="14">{title}</text>{scale}{ticks}'
            f'<text x="310" y="320" text-anchor="middle">threads</text><text x="70" y="42">ms</text>'
            f'<polyline fill="none" stroke="#a33" stroke-width="2" points="{points(off)}"/>'
            f'<polyline fill="none" stroke="#14505c" stroke-width="2" points="{points(on)}"/>'
            '<text x="400" y="334" fill="#a33">without cache</text><text x="490" y="334" fill="#14505c">with cache</text>'
            "</svg>\n")


def figures(test, results, folder):
    """Figures 4.1 and 4.2 (direct), 4.3 and 4.4 (HTTP), one pair for each database and layout."""
    first = 1 if test == "direct" else 3
    for result in results:
        page = sorted({row["page"] for row in result["rows"]})[0]
        for number, field, word in ((first, "mean", "mean"), (first + 1, "max", "maximum")):
            off = {t: row[field] for t, row in chosen(result["rows"], "off", False, page).items()}
            on = {t: row[field] for t, row in chosen(result["rows"], "on", False, page).items()}
            name = f"figure-4.{number}-{result['database']}-{result['layout']}.svg"
            figure(f"Figure 4.{number}: {word} time, {test} test ({result['database']}, {result['layout']} layout)",
                   off, on, os.path.join(folder, name))


def jmeter(options, ground, url, sessions, threads):
    """One row, measured by Apache JMeter with the plan beside this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    if os.path.exists(f"{DEBIAN_JMETER}/bin/ApacheJMeter.jar"):
        program = ["java", f"-Djmeter.home={DEBIAN_JMETER}", "-cp",
                   f"{DEBIAN_JMETER}/bin/ApacheJMeter.jar:/usr/share/java/bsh.jar", "bsh.Interpreter",
                   os.path.join(here, "start_jmeter.bsh")]
    elif shutil.which("jmeter"):
        program = ["jmeter"]
    else:
        raise SystemExit("jmeter is not installed (apt-get install jmeter jmeter-http)")
    tokens = os.path.join(ground.folder, "sessions.csv")
    with open(sessions) as source, open(tokens, "w") as target:
        for line in source:
            target.write(line.split()[1] + "\n")
    log = os.path.join(ground.folder, "jmeter.csv")
    if os.path.exists(log):
        os.remove(log)
    host, port = url.split("//")[1].split(":")
    plan = os.path.join(here, "front_page.jmx")
    subprocess.run(
        program + ["-n", "-t", plan, "-l", log, f"-Jhost={host}", f"-Jport={port}", f"-Jthreads={threads}",
                   f"-Jrounds={options.rounds}", f"-Jtokens={tokens}", "-Jjmeter.save.saveservice.output_format=csv",
                   "-Jjmeter.save.saveservice.print_field_names=true"],
        check=True, stdout=subprocess.DEVNULL, cwd=ground.folder)
    with open(log) as file:
        rows = list(csv.DictReader(file))
    times = sorted(int(row["elapsed"]) for row in rows)
    begin = min(int(row["timeStamp"]) for row in rows)
    end = max(int(row["timeStamp"]) + int(row["elapsed"]) for row in rows)
    def percentile(part):
        return times[min(len(times) - 1, int(part * len(times)))]
    return {"test": "jmeter", "threads": int(threads), "requests": len(times),
            "errors": sum(row["success"] != "true" for row in rows), "mean": sum(times) / len(times),
            "min": times[0], "max": times[-1], "p90": percentile(0.9), "p95": percentile(0.95),
            "perSecond": 1000 * len(times) / max(1, end - begin)}
