"""An experiment by hand for tests of reports: two cases with a stranger's names."""

from msgspec.structs import replace

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.results import CaseResult, CaseStatistics, Check, Checkpoint, Result
from ccplay.analysis.statistics import statistic
from ccplay.analysis.trust import HealthResult
from ccplay.report.data.material import Material, Run
from ccplay.scenario.values import Published
from ccplay.traffic.flow import FlowResult

PUBLISHED = (0.72, 0.75, 0.67)
HOSTILE = '<script>alert("1")</script>'
METRICS = ["checkpoint.ratio", "flows.1.goodput_bps", "flows.2.goodput_bps"]

HEALTH = HealthResult(
    ticks=1000,
    missed=0,
    late_p50_us=50.0,
    late_p99_us=900.0,
    sweep_p50_us=300.0,
    lab_cpu=0.1,
    host_cpu=0.4,
    steal=0.0,
    steal_max=0.0,
    delay_late_p50_us=20.0,
    delay_late_p99_us=200.0,
    events_dropped=0,
    trustworthy=True,
    reasons=[],
)


def flow(name: str, goodput: float) -> FlowResult:
    return FlowResult(
        id=name,
        cc="reno",
        switches=[],
        src="h1",
        dst="h2",
        streams=1,
        started_s=0.0,
        goodput_bps=goodput,
        bytes=10_000_000,
        duration_s=20.0,
        retransmits=12,
        cwnd_p50=20,
        cwnd_p99=40,
        cwnd_max=60,
        srtt_p50_ms=70.0,
        srtt_p95_ms=80.0,
        srtt_p99_ms=90.0,
        min_rtt_ms=50.0,
        error=None,
    )


def case_result(name: str, repeat: int, ratio: float, **parameters: str | float) -> CaseResult:
    return CaseResult(
        name=name,
        parameters=dict(parameters),
        repeat=repeat,
        duration_s=20.0,
        interrupted=False,
        flows=[flow("1", 2e6 + 1e4 * repeat), flow("2", 3e6)],
        queues=[],
        pings=[],
        downloads=[],
        checkpoint=Checkpoint(
            t=20.0, elapsed_s=20.0, first="2", bytes={"1": 7_000_000, "2": 10_000_000}, ratio=ratio
        ),
        health=HEALTH,
        errors=[],
    )


def case_statistics(
    name: str, runs: list[CaseResult], published: tuple[float, ...] = ()
) -> CaseStatistics:
    measured = [metrics_of(run) for run in runs]
    return CaseStatistics(
        name=name,
        parameters=runs[0].parameters,
        runs=len(runs),
        metrics={each: statistic([m[each] for m in measured]) for each in measured[0]},
        reported=METRICS,
        published=[Published(METRICS[0], published, note=f"queue {HOSTILE}")] if published else [],
    )


def experiment() -> Result:
    """Return two cases of three runs each."""
    ratios = (0.70, 0.75, 0.82)
    first = [case_result("reno <b>", n, ratio) for n, ratio in enumerate(ratios, 1)]
    checked = [
        CaseResult(
            **{
                **{field: getattr(run, field) for field in run.__struct_fields__},
                "checks": [
                    Check(
                        metric=METRICS[0],
                        text="at most 0.8",
                        why=HOSTILE,
                        value=ratio,
                        ok=ratio <= 0.8,
                    )
                ],
            }
        )
        for run, ratio in zip(first, ratios, strict=True)
    ]
    second = [case_result(HOSTILE, n, ratio + 0.3) for n, ratio in enumerate(ratios, 1)]
    return Result(
        scenario="race",
        title=f"The race {HOSTILE}",
        machine=None,
        cases=[*checked, *second],
        statistics=[
            case_statistics("reno <b>", checked, PUBLISHED),
            case_statistics(HOSTILE, second),
        ],
    )


def matrix(delays: tuple[str, ...], limits: tuple[int, ...]) -> list[CaseStatistics]:
    """Return the cases of a matrix."""
    cases = []
    for delay in delays:
        for limit in limits:
            name = f"delay {delay}, limit {limit}"
            runs = [
                case_result(name, n, 0.5 + limit / 200 + n / 50, delay=delay, limit=limit)
                for n in (1, 2, 3)
            ]
            cases.append(case_statistics(name, runs))
    return cases


def variants(*names: str, published: tuple[float, ...] = (), most: float = 0.8) -> Result:
    """Return a case run once at each point of a matrix of algorithms, all checked for one thing."""
    runs = []
    for number, name in enumerate(names):
        run = case_result(f"alone, cc {name}", 1, 0.5 + number / 100, cc=name)
        ratio = 0.5 + number / 100
        check = Check(
            metric=METRICS[0], text=f"at most {most}", why="so", value=ratio, ok=ratio <= most
        )
        runs.append(replace(run, checks=[check]))
    return Result(
        scenario="variants",
        title="Variants",
        machine=None,
        cases=runs,
        statistics=[case_statistics(run.name, [run], published) for run in runs],
    )


def material(result: Result) -> Material:
    """Return a result without recordings, ready to be reported."""
    return Material(
        name="race",
        title=result.title,
        about=f"All about it {HOSTILE}.\n\nAnd more.",
        result=result,
        runs=[Run(each, None, f"run-{n}") for n, each in enumerate(result.cases)],
        scenario_text=f'title = "{HOSTILE}"',
        command="ccplay run race.toml --out results",
        about_cases={HOSTILE: HOSTILE},
    )
