"""Random keys: every key of the screen, dialogs filled in, the palette, mouse and paste."""

import random

from ccplay.ui.main_screen import MainScreen

_NAMED = {
    "space": b" ",
    "left": b"\x1b[D",
    "right": b"\x1b[C",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "shift+left": b"\x1b[1;2D",
    "shift+right": b"\x1b[1;2C",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "tab": b"\t",
    "shift+tab": b"\x1b[Z",
    "plus": b"+",
    "equals_sign": b"=",
    "minus": b"-",
    "left_square_bracket": b"[",
    "less_than_sign": b"<",
    "right_square_bracket": b"]",
    "greater_than_sign": b">",
    "question_mark": b"?",
}


def _bound() -> list[bytes]:
    names = [name for each in MainScreen.BINDINGS for name in each.key.split(",")]  # type: ignore[union-attr]
    return [_NAMED.get(name) or name.encode("ascii") for name in names]


ENTER, ESCAPE, PALETTE, QUIT = b"\r", b"\x1b", b"\x10", b"\x11"

BOUND = _bound()
"""Bytes of each key of the main screen; a key that ``_NAMED`` lacks sends its name."""

OPENERS = [b"f", b"w", b"p", b"u", b"c", b"q", b"l", b"m", b"g", b"k", b"S"]
"""Keys that open a dialog."""

MOVES = [b"\t", b"\x1b[Z", b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b" ", b"\x7f", b"\x1b[3~"]

WORDS = (
    *("1", "0", "-1", "37", "1e9", "99999999999999999999", "nan", "10 mbit", "2 Mbit/s", "200 ms"),
    *("0.1 %", "100 %", "bbr", "cubic", "reno", "codel", "s1", "d2", "no such thing", "[red]x[/]"),
    *("ü", "漢字", "\u202eabc", "../../x", "a" * 300),
)

QUERIES = (
    *("rate 2 mbit", "rate 5", "delay 5 ms", "jitter 3 ms", "loss 1 %", "queue pfifo 10"),
    *("queue codel target 3 ms", "queue fq_codel", "queue red", "mark here", "start a cubic"),
    *("switch flow 1 to", "stop flow", "cross traffic", "download", "ping", "trace flow"),
    *("capture", "new connections", "theme", "stop capture", "bpf", "x", "!"),
)


def some(chance: random.Random) -> bytes:
    """Return the bytes of one key, or of a few that belong together."""
    kind = chance.choices(
        ("bound", "dialog", "move", "palette", "mouse", "paste"), (8, 5, 3, 3, 1, 1)
    )
    match kind[0]:
        case "bound":
            return chance.choice(BOUND)
        case "dialog":
            return chance.choice(OPENERS) + _filled_in(chance)
        case "move":
            return chance.choice([*MOVES, ENTER, ESCAPE, b"\x03"])
        case "palette":
            return PALETTE + chance.choice(QUERIES).encode() + chance.choice([ENTER, ENTER, ESCAPE])
        case "mouse":
            x, y = chance.randint(1, 120), chance.randint(1, 40)
            button = chance.choice((0, 0, 64, 65))
            return f"\x1b[<{button};{x};{y}M\x1b[<{button};{x};{y}m".encode()
    return b"\x1b[200~" + chance.choice(WORDS).encode() + b"\x1b[201~"


def _filled_in(chance: random.Random) -> bytes:
    keys = b""
    for _ in range(chance.randint(0, 5)):
        keys += chance.choice(MOVES)
        if chance.random() < 0.4:
            keys += chance.choice(WORDS).encode()
    return keys + chance.choice([ENTER, ENTER, ENTER, ESCAPE])
