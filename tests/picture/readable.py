#!/usr/bin/env python3
"""Pictures and traces can be read: a browser finds well-formed SVG that asks for nothing from
elsewhere, where no text covers another or leaves the picture; Perfetto finds a trace whose slices
follow each other and whose arrows begin and end in slices.

usage: readable.py <catenary>              checks every algorithm
       readable.py <catenary> --self-test  fails unless each broken copy is noticed
"""
import json
import re
import sys
import xml.etree.ElementTree

import command

SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {SVG + name for name in ("svg", "title", "desc", "style", "g", "rect", "path", "text")}
FONT_SIZE = re.compile(r"\.(\w+)\{[^}]*font-size:(\d+)px")
ANCHOR = re.compile(r"\.(\w+)\{[^}]*text-anchor:(\w+)")
# A little less than text in the widest of the fonts that are asked for takes.
WIDTH, HEIGHT = 0.55, 0.72


def boxes_of_texts(root):
    """(text, left, top, right, bottom) of every text."""
    style = root.find(SVG + "style").text
    sizes, anchors = dict(FONT_SIZE.findall(style)), dict(ANCHOR.findall(style))
    for text in root.iter(SVG + "text"):
        classes = text.get("class", "").split()
        size = next((float(sizes[c]) for c in classes if c in sizes), 11.0)
        anchor = next((anchors[c] for c in classes if c in anchors), "start")
        width = WIDTH * size * len(text.text)
        left = float(text.get("x")) - {"start": 0, "middle": width / 2, "end": width}[anchor]
        bottom = float(text.get("y"))
        yield text.text, left, bottom - HEIGHT * size, left + width, bottom


def svg_problems(text):
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as error:
        yield f"no XML: {error}"
        return
    for element in root.iter():
        if element.tag not in SHAPES:
            yield f"an element <{element.tag}>"
        if any("href" in name or name.startswith("on") for name in element.attrib):
            yield f"<{element.tag}> asks for something from elsewhere or does something"
    if "@import" in text or "url(" in text:
        yield "the style asks for something from elsewhere"
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = sorted(boxes_of_texts(root), key=lambda box: box[1])
    for at, (words, left, top, right, bottom) in enumerate(boxes):
        if left < 0 or top < 0 or right > width or bottom > height:
            yield f"the text {words!r} leaves the picture"
        for other, left_2, top_2, _, bottom_2 in boxes[at + 1:]:
            if left_2 >= right:
                break
            if top < bottom_2 and top_2 < bottom:
                yield f"the texts {words!r} and {other!r} cover each other"


def trace_problems(text):
    try:
        events = json.loads(text)["traceEvents"]
    except (ValueError, KeyError) as error:
        yield f"no trace: {error}"
        return
    slices = {}
    for event in events:
        if event["ph"] == "X":
            slices.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    if not set(slices) <= named:
        yield "a thread has no name"
    for thread, times in slices.items():
        times.sort()
        if any(first[1] > second[0] for first, second in zip(times, times[1:])):
            yield f"slices of thread {thread} overlap"
    ends = {}
    for event in events:
        if event["ph"] in ("s", "f"):
            ends.setdefault(event["id"], {})[event["ph"]] = event
            if not any(begin <= event["ts"] <= end for begin, end in slices.get(event["tid"], [])):
                yield f"arrow {event['id']} does not {event['ph']} in a slice"
    for number, pair in ends.items():
        if set(pair) != {"s", "f"} or pair["s"]["ts"] >= pair["f"]["ts"]:
            yield f"arrow {number} does not go forward"


def outputs(program, *arguments):
    return (command.run(program, "draw", *arguments),
            command.run(program, "export", *arguments, "--format", "chrome"))


def check_all(program):
    for collective, algorithm in command.algorithms(program):
        for options in ((1,), (2,), (4, "--root", 1), (8, "--box", 4, "--lanes", 2), (16, "--lanes", 2),
                        (16, "--box", 4), (17,)):
            ranks, box = options[0], options[options.index("--box") + 1] if "--box" in options else 1
            if not command.runs_on(program, collective, algorithm, ranks, box):
                continue
            arguments = (collective, algorithm, "--ranks", *options)
            picture, trace = outputs(program, *arguments)
            for problem in [*svg_problems(picture), *trace_problems(trace)]:
                yield f"{' '.join(map(str, arguments))}: {problem}"


def self_test(program):
    picture, trace = outputs(program, "AllReduce", "ring", "--ranks", 8)
    first = re.search(r"<text x=\"[^\"]*\" y=\"([^\"]*)\" class=\"rank\">rank 0</text>", picture)
    pictures = {
        "not closed": picture.replace("</svg>", ""),
        "a script": picture.replace("</svg>", "<script>1</script></svg>"),
        "an image": picture.replace("</svg>", '<g href="http://a.b/c"/></svg>'),
        "a font": picture.replace("<style>", "<style>@import url(a);"),
        "text on text": picture.replace("</svg>", first.group() + "</svg>"),
        "text outside": picture.replace("</svg>", '<text x="-9" y="50">text</text></svg>'),
    }
    number = re.search(r'"ph":"f","bp":"e","tid":(\d+),"ts":(\d+)', trace)
    traces = {
        "a comma": trace.replace("},\n", "},,\n", 1),
        "longer slices": trace.replace('"dur":1000', '"dur":1001'),
        "no name": trace.replace("thread_name", "thread_nom", 1),
        "an early end": trace.replace(number.group(), number.group().replace(number[2], "0", 1)),
        "no end": trace.replace('"ph":"f"', '"ph":"i"', 1),
        "an end nowhere": trace.replace(number.group(), number.group() + "999999"),
    }
    for what, text in pictures.items():
        if not list(svg_problems(text)):
            yield f"went unnoticed in a picture: {what}"
    for what, text in traces.items():
        if not list(trace_problems(text)):
            yield f"went unnoticed in a trace: {what}"


if __name__ == "__main__":
    found = list(self_test(sys.argv[1]) if "--self-test" in sys.argv else check_all(sys.argv[1]))
    print("\n".join(found) or "all of it can be read")
    sys.exit(bool(found))
