# SPDX-License-Identifier: Apache-2.0
"""perf_plot.py - bars of ratios as SVG, with nothing but text."""
from xml.sax.saxutils import escape

ROW, BAR, LEFT, WIDTH, TOP = 34, 12, 190, 460, 56
COLOURS = (("decode", "#1f6feb"), ("prefill", "#d9822b"))


def label(x, y, text, anchor="start", colour="#57606a", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(text)}</text>'


def ratios(rows):
    """rows: (name, ratio of decode, ratio of prefill). A line marks 1, where the peer stands."""
    most = max([1.0] + [v for _, *two in rows for v in two])
    top = next(t for t in (2, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100, 1000) if t >= most or t == 1000)
    scale, height = WIDTH / top, TOP + ROW * len(rows) + 30
    bottom = height - 26
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" '
           f'viewBox="0 0 {LEFT + WIDTH + 70} {height}" font-family="sans-serif">',
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           label(LEFT, 20, "tokens a second, times llama.cpp (one thread)", colour="#24292f", size=14)]
    for i, (name, colour) in enumerate(COLOURS):
        out.append(f'<rect x="{LEFT + 90 * i}" y="30" width="12" height="12" fill="{colour}"/>')
        out.append(label(LEFT + 90 * i + 18, 40, name))
    for tick in range(0, top + 1, max(1, top // 6)):
        x = LEFT + tick * scale
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#d0d7de"/>')
        out.append(label(x, bottom + 16, str(tick), "middle"))
    for i, (name, *values) in enumerate(rows):
        y = TOP + ROW * i + 4
        out.append(label(LEFT - 8, y + BAR + 4, name, "end", "#24292f"))
        for k, v in enumerate(values):
            out.append(f'<rect x="{LEFT}" y="{y + k * (BAR + 1)}" width="{max(v * scale, 1):.1f}" height="{BAR}" '
                       f'fill="{COLOURS[k][1]}"/>')
            out.append(label(LEFT + v * scale + 5, y + k * (BAR + 1) + 10, f"{v:.2f}", size=11))
    out.append(f'<line x1="{LEFT + scale:.1f}" y1="{TOP}" x2="{LEFT + scale:.1f}" y2="{bottom}" stroke="#24292f" '
               'stroke-dasharray="4 3"/>')
    return "\n".join(out + ["</svg>", ""])
