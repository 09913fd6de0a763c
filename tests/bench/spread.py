"""How evenly 64 flows spread over equally short paths: counts per topology and seed."""

from collections import Counter

from rich.console import Console

from tests.bench._figures import table
from tests.lab.namespaced import call

KINDS = (("leaf-spine", {"spines": 2}), ("leaf-spine", {"spines": 4}), ("fat-tree", {"k": 4}))
SEEDS = (1, 2, 3)


def run(console: Console) -> None:
    """Measure and print."""
    heads = ("topology", "paths", *(f"seed {seed}: flows on each" for seed in SEEDS))
    aim = "64 flows, ± 3 standard deviations of a fair choice"
    sheet = table("64 flows between two hosts over equally short paths", aim, heads)
    for kind, parameters in KINDS:
        rows = [
            Counter(call("tests.lab.fabric_cases:paths", kind, parameters, seed)) for seed in SEEDS
        ]
        words = ", ".join(f"{name} {value}" for name, value in parameters.items())
        cells = [" : ".join(str(count) for _, count in sorted(row.items())) for row in rows]
        sheet.add_row(f"{kind} ({words})", str(max(map(len, rows))), *cells)
    console.print(sheet)
