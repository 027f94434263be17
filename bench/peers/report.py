"""A comparison for people and for programs: tables, CSV, SVG."""

import csv
import io
import math
import statistics
from xml.sax.saxutils import escape

from results import STARTUP

CSV_COLUMNS = ["ranks", "operation", "type", "bytes", "mode", "implementation", "kind", "rounds",
               "median_us", "quartile1_us", "quartile3_us", "algbw_GBs", "best_peer",
               "best_peer_over_this", "ratio_quartile1", "ratio_quartile3", "share_of_limit", "odd"]
MODES = {"loop": "back to back", "each": "met before each and waited for it",
         "create": "communicator made", "first": "communicator made and first all-reduce done"}


def size_text(size):
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}B"
    return f"{size} B"


def time_text(time):
    """Microseconds with three digits, without an exponent."""
    if time >= 100:
        return f"{time:.0f}"
    return f"{time:.{2 - max(0, math.floor(math.log10(time))) if time >= 1 else 2}f}"


def table(lines, titles):
    """Markdown that is aligned, so that it reads as well unrendered."""
    widths = [max(len(line[i]) for line in [titles, *lines]) for i in range(len(titles))]
    rule = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(text.rjust(width) for text, width in zip(line, widths)) + " |"
                     for line in [titles, rule, *lines])


def row_cells(results, row, names):
    """A line of a table: times, then ratios."""
    cells = [MODES[row.mode] if row.operation == STARTUP else size_text(row.bytes)]
    best = results.best_peer(row)
    for name in names:
        kind = results.kinds[name]
        there = results.limit_row(row) if kind == "limit" else row
        found = results.spread(there, name)
        text = ("~" if results.is_odd(there, name) else "") + time_text(found.median) if found else "-"
        if found and kind == "ours":
            text += f" ({time_text(found.low)}-{time_text(found.high)})"
        cells.append(text + ("*" if name == best else ""))
    for name in results.names("ours"):
        ratio = results.ratio(row, best, name) if best else None
        cells.append(f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})" if ratio else "-")
        share = results.share_of_limit(row, name)
        cells.append(f"{100 * share:.0f}%" if share else "-")
    return cells


def tables(results):
    """One for each number of ranks, operation, type and way of looping; startup takes both its rows."""
    groups = {}
    for row in results.rows():
        mode = "" if row.operation == STARTUP else row.mode
        groups.setdefault((row.ranks, row.operation, row.type, mode), []).append(row)
    parts = []
    for (ranks, operation, kind, mode), rows in sorted(groups.items(), key=group_order):
        rows.sort(key=lambda row: row.bytes)
        names = [name for name in results.names()
                 if any(results.spread(results.limit_row(row) if results.kinds[name] == "limit"
                                       else row, name) for row in rows)]
        if all(results.kinds[name] == "limit" for name in names):
            continue
        titles = ["", *names]
        for name in results.names("ours"):
            short = name.removeprefix("catenary-")
            titles += [f"best peer / {short}", f"of limit, {short}"]
        heading = f"{operation}, {ranks} ranks" if operation == STARTUP else \
            f"{operation}, {kind}, {ranks} ranks, {MODES[mode]}"
        parts.append(f"{heading}\n\n" + table([row_cells(results, row, names) for row in rows], titles))
    return "\n\n".join(parts) + "\n"


def summary(results):
    """For each of ours by how much it beats the best peer, at every size and in geometric mean; then the
    same for each limit, which is by how much anything could."""
    def measured(row, best, name):
        ratio = results.ratio(row, best, name)
        return ratio.median if ratio else None

    parts = [ratio_table(results, f"Best peer / {name}", name, measured)
             for name in results.names("ours")]
    parts += [ratio_table(results, f"Best peer / {name}: what memory alone would allow", name,
                          results.ratio_to_limit)
              for name in results.names("limit")]
    return "\n\n".join(part for part in parts if part) + "\n"


def ratio_table(results, title, name, ratio_of):
    """"" if there is none."""
    groups, sizes = {}, set()
    for row in results.rows():
        best = results.best_peer(row)
        ratio = ratio_of(row, best, name) if best and row.operation != STARTUP else None
        if ratio:
            groups.setdefault(row._replace(bytes=0), {})[row.bytes] = ratio
            sizes.add(row.bytes)
    lines = []
    for row, ratios in sorted(groups.items(), key=lambda group: group_order(
            ((group[0].ranks, group[0].operation, group[0].type, group[0].mode), None))):
        cells = [f"{ratios[size]:.2f}" if size in ratios else "-" for size in sorted(sizes)]
        lines.append([f"{row.operation}, {row.type}, {row.ranks} ranks, {row.mode}", *cells,
                      f"{statistics.geometric_mean(ratios.values()):.2f}"])
    titles = ["", *map(size_text, sorted(sizes)), "mean"]
    return f"{title}\n\n" + table(lines, titles) if lines else ""


def group_order(group):
    (ranks, operation, kind, mode), _ = group
    order = ["all_reduce", "reduce_scatter", "all_gather", "alltoall", "broadcast", "reduce",
             "sendrecv", STARTUP]
    return (order.index(operation), ranks, ["float", "half", "bfloat16", "-"].index(kind),
            mode != "loop")


def csv_text(results, facts):
    """A comment for each fact, then a line for each row and implementation."""
    out = io.StringIO()
    for name, value in facts:
        out.write(f"# {name}: {value}\n")
    writer = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in sorted(results.rows()):
        best = results.best_peer(row)
        for name in results.names():
            if results.spread(row, name):
                writer.writerow(csv_line(results, row, name, best))
    return out.getvalue()


def csv_line(results, row, name, best):
    found = results.spread(row, name)
    line = dict(row._asdict(), implementation=name, kind=results.kinds[name], rounds=found.count,
                median_us=f"{found.median:.4g}", quartile1_us=f"{found.low:.4g}",
                quartile3_us=f"{found.high:.4g}", odd="odd" if results.is_odd(row, name) else "")
    if row.bytes:
        line["algbw_GBs"] = f"{row.bytes / found.median * 1e-3:.4g}"
    if results.kinds[name] != "limit":
        share = results.share_of_limit(row, name)
        if share:
            line["share_of_limit"] = f"{share:.3g}"
    ratio = results.ratio(row, best, name) if best and results.kinds[name] == "ours" else None
    if ratio:
        line.update(best_peer=best, best_peer_over_this=f"{ratio.median:.4g}",
                    ratio_quartile1=f"{ratio.low:.4g}", ratio_quartile3=f"{ratio.high:.4g}")
    return line


def copy_table(results):
    """The speed of copying, beside which all bandwidths are to be seen."""
    lines = []
    for size, speeds in sorted(results.copies.items()):
        one, every = (statistics.median(column) for column in zip(*speeds))
        lines.append([size_text(size), f"{one:.1f}", f"{every:.1f}"])
    return table(lines, ["bytes copied", "one core, GB/s", "all cores, GB/s"]) if lines else ""


# The picture: for each number of ranks, operation and type a panel; in it, over the size, by how much
# each implementation is slower than the limit for mapped buffers.

PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 420, 270, 2
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 34, 40
HIGHEST = 1000  # what is slower lies on the upper edge
LEGEND_LINE = 18
COLOURS = ["#1b6e3c", "#58b368", "#c2410c", "#e08a00", "#8b5cf6", "#2563eb", "#64748b", "#db2777",
           "#0891b2", "#7c2d12", "#18181b", "#a3a300"]


def panels(results):
    """[(title, {name: [(bytes, times the limit)]})]"""
    found = {}
    for row in sorted(results.rows(), key=lambda row: row.bytes):
        if row.mode != "loop":
            continue
        limits = [at.median for limit in results.names("limit") if (at := results.spread(row, limit))]
        if not limits:
            continue
        panel = found.setdefault((row.ranks, row.operation, row.type, row.mode), {})
        for name in results.names():
            at = results.spread(row, name)
            if at and name != "limit-mapped":
                panel.setdefault(name, []).append((row.bytes, at.median / min(limits)))
    return [(f"{operation}, {kind}, {ranks} ranks", found[ranks, operation, kind, mode])
            for (ranks, operation, kind, mode), _ in sorted(found.items(), key=group_order)]


class Axes:
    """Where values lie in a panel; both axes are logarithmic."""

    def __init__(self, lines, x, y):
        points = [point for line in lines.values() for point in line]
        self.sizes = sorted({size for size, _ in points})
        self.low = min(1.0, min(value for _, value in points))
        self.high = min(HIGHEST, max(10.0, max(value for _, value in points)))
        self.box = (x + LEFT, y + TOP, PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM)

    def x(self, size):
        first, last = math.log(self.sizes[0]), math.log(self.sizes[-1])
        share = 0.5 if first == last else (math.log(size) - first) / (last - first)
        return self.box[0] + share * self.box[2]

    def y(self, value):
        value = min(value, self.high)
        share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return self.box[1] + (1 - share) * self.box[3]


def text_at(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def draw_panel(title, lines, colours, x, y):
    axes = Axes(lines, x, y)
    left, top, width, height = axes.box
    out = [text_at(left + width / 2, y + 20, title, extra=' font-weight="bold"')]
    decade = 10 ** math.floor(math.log10(axes.low))
    while decade <= axes.high:
        if decade >= axes.low:
            level = axes.y(decade)
            out.append(f'<line x1="{left}" x2="{left + width}" y1="{level:.1f}" y2="{level:.1f}" '
                       'stroke="#d4d4d8"/>')
            out.append(text_at(left - 6, level + 4, f"{decade:g}x", "end"))
        decade *= 10
    for size in axes.sizes:
        out.append(text_at(axes.x(size), top + height + 16, size_text(size).replace(" ", "").rstrip("B")))
    out.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" '
               'stroke="#71717a"/>')
    for name, points in lines.items():
        path = " ".join(f"{axes.x(size):.1f},{axes.y(value):.1f}" for size, value in points)
        dashes = ' stroke-dasharray="5 4"' if name.startswith("limit") else ""
        out.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" '
                   f'stroke-width="{3 if name.startswith("catenary") else 1.5}"{dashes}/>')
        out += [f'<circle cx="{axes.x(size):.1f}" cy="{axes.y(value):.1f}" r="2.5" '
                f'fill="{colours[name]}"/>' for size, value in points]
    return out


def svg_text(results, facts):
    drawn = panels(results)
    names = [name for name in results.names() if any(name in lines for _, lines in drawn)]
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in
               enumerate(sorted(names, key=lambda name: results.kinds[name] != "ours"))}
    rows = -(-len(drawn) // COLUMNS)
    width = COLUMNS * PANEL_WIDTH
    head = 56 + LEGEND_LINE * -(-len(names) // 5)
    height = head + rows * PANEL_HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           text_at(width / 2, 20, "Time of an operation, in multiples of what memory alone would take"
                   f" (above {HIGHEST}: at the edge)",
                   extra=' font-size="15"'),
           text_at(width / 2, 38, "; ".join(f"{name}: {value}" for name, value in facts[:3]))]
    for i, name in enumerate(names):
        x, y = 30 + i % 5 * (width - 30) / 5, 58 + i // 5 * LEGEND_LINE
        out.append(f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" stroke="{colours[name]}" '
                   'stroke-width="3"/>')
        out.append(text_at(x + 28, y, name, "start"))
    for i, (title, lines) in enumerate(drawn):
        out += draw_panel(title, lines, colours, i % COLUMNS * PANEL_WIDTH,
                          head + i // COLUMNS * PANEL_HEIGHT)
    return "\n".join([*out, "</svg>", ""])
