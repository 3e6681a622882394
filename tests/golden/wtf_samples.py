"""The wtf-trace samples."""
import json

from wtf_layout import Binary


def tiny():
    trace = Binary()
    trace.zone(1, "front (70) / main (71)", "script", "golden:1")
    trace.zone(2, "front (70) / worker (72)", "native_script", "")
    trace.use(1)
    trace.event("wtf.timing#frameStart", 2000, 1)
    trace.event("shop#order", 2100, 17, "Zoë 世")
    trace.event("wtf.scope#enter", 2200, "packing")
    trace.event("shop#weigh", 2250, -250)
    trace.event("wtf.scope#appendData", 2260, "box", '{"size": [1, 2]}')
    trace.event("wtf.scope#leave", 2300)
    trace.event("wtf.flow#branch", 2350, 9, 0, "delivery", None)
    trace.end_chunk()
    # A scope that is left in another chunk than it was entered, with a table of its own.
    trace.use(1)
    trace.event("wtf.trace#mark", 2400, "half", "[true, null]")
    trace.event("wtf.scope#leave", 2500)
    trace.event("wtf.timing#frameEnd", 2600, 1)
    trace.event("wtf.trace#timeStamp", 2650, "tick", None)
    trace.event("wtf.timeRange#begin", 2700, 4, "open hours", None)
    trace.event("every#type", 2800, 1, -128, 255, -32768, 65535, -2**31, 2**32 - 1, -0.25, "plain",
                "grüße 世", ord("Q"), 0x4E16, '{"k": "v"}', 9, 123_456, [-1, 0, 1], [255],
                [-300, 300], [65535, 0, 1], [-2**31], [1, 2, 3], [0.5, -1.5], b"abc", [0x4E16, 65],
                [7, 8, 9], 12, "dom")
    trace.event("every#type", 2900, 0, 0, 0, 0, 0, 0, 0, 0.0, "", None, ord("a"), ord("b"), None, 0,
                0, None, None, [], None, None, None, None, b"", None, [], 0, "")
    trace.event("wtf.timeRange#end", 3000, 4)
    trace.use(2)
    for i in range(6):
        us = 2050 + 150 * i
        trace.event("shop#pick", us)
        trace.event("wtf.flow#extend" if i < 5 else "wtf.flow#terminate", us + 20,
                    *((9, "step", str(i)) if i < 5 else (9, None)))
        trace.event("wtf.scope#leave", us + 90)
    trace.event("shop#pick", 3100)  # never left
    return trace


def scenario(trace):
    """The same for both forms, with what both can say."""
    trace.zone(1, "one", "script", "golden")
    trace.use(1)
    for i in range(40):
        us = 1000 + 700 * i
        trace.event("wtf.timing#frameStart", us, i)
        trace.event("shop#order", us + 10, i, "Zoë" if i % 3 else None)
        trace.event("shop#weigh", us + 20, 100 * i - 2000)
        if i % 8 == 0:
            trace.event("wtf.scope#enter", us + 30, "checking")
            trace.event("wtf.scope#appendData", us + 40, "note", json.dumps({"n": i}))
            trace.event("wtf.scope#leave", us + 50)
        trace.event("wtf.scope#leave", us + 300)
        trace.event("wtf.timing#frameEnd", us + 400, i)
        if isinstance(trace, Binary) and i % 16 == 15:
            trace.end_chunk()
    trace.event("wtf.trace#mark", 40_000, "end", None)
    return trace
