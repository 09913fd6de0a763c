"""Commands and settings in plain words for the event log, menus and messages."""

from __future__ import annotations

from ccplay.model.disciplines import described
from ccplay.model.moving import show_trace
from ccplay.model.quantities import Field, fields_of
from ccplay.model.values import LinkFields, LinkSetting, Monitored, Qdisc, TrafficClass
from ccplay.units import format_rate, format_ratio, format_time_us

CA_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")
"""Names of ``enum tcp_ca_state`` of include/uapi/linux/tcp.h, in its order."""


def describe_qdisc(qdisc: Qdisc) -> str:
    """Return a queue as text: ``pfifo 100 pkt``, ``codel target 5 ms``."""
    known = {each.name: each for each in _parameters(qdisc.kind)}
    words = [qdisc.kind]
    for name, value in sorted(qdisc.options.items(), key=lambda option: option[0] != "limit"):
        # A recording from elsewhere may have text in place of a number.
        plain = name not in known or isinstance(value, str)
        text = str(value) if plain else known[name].show(value)
        if name == "limit":
            words.append(text.replace("packets", "pkt"))
        elif value is True:
            words.append(name)
        else:
            words.append(f"{name} {text}")
    return " ".join(words)


def limit_unit(kind: str) -> str:
    """Return the unit of the ``limit`` of a kind of queue: ``packets`` or ``bytes``."""
    return next(
        (each.quantity.unit for each in _parameters(kind) if each.name == "limit"), "packets"
    )


def _parameters(kind: str) -> tuple[Field, ...]:
    found = described(kind)
    return () if found is None else found.parameters


def describe_classes(classes: list[TrafficClass]) -> str:
    """Return the shares of a link's classes as text: ``bulk 50 %, interactive 50 %``."""
    shares = (f"{each.name} {format_ratio(each.share)}" for each in classes)
    return ", ".join(shares) or "one queue"


def describe_link(setting: LinkFields, *, zeros: bool = False) -> str:
    """Return a link's settings as text: ``10 Mbit/s, 20 ms, loss 1 %``; None is left out.

    ``zeros`` includes what is off, for a command that turns it off.
    """
    words = []
    if setting.rate is not None and not setting.is_paced:
        words.append(format_rate(setting.rate) if setting.rate else "rate unlimited")
    if setting.delay_us is not None and not (setting.trace and setting.trace.has_delay):
        words.append(format_time_us(setting.delay_us))
    if setting.jitter_us is not None and (setting.jitter_us or zeros):
        words.append(f"± {format_time_us(setting.jitter_us)}")
    if setting.distribution is not None:
        words.append(f"{setting.distribution} jitter")
    if setting.loss is not None and (setting.loss or zeros):
        words.append(f"loss {format_ratio(setting.loss)}")
    words += _models(setting, zeros=zeros)
    if setting.trace is not None and (setting.trace or zeros):
        words.append(f"trace {show_trace(setting.trace)}" if setting.trace else "no trace")
    if setting.mark is not None and (setting.mark or zeros):
        words.append(f"ECN marks from {setting.mark} pkt" if setting.mark else "no ECN marks")
    if setting.down is not None and (setting.down or zeros):
        words.append("down" if setting.down else "up")
    if isinstance(setting, LinkSetting) and setting.mtu is not None:
        words.append(f"MTU {setting.mtu}")
    if isinstance(setting, LinkSetting) and setting.classes:
        words.append(f"classes {describe_classes(setting.classes)}")
    return ", ".join(words)


def _models(setting: LinkFields, *, zeros: bool) -> list[str]:
    """Return the models of loss and faults as text: ``reorder 1 %``."""
    fields = fields_of(LinkFields)
    values = {name: getattr(setting, name) for name in MODELS}
    return [
        f"{fields[name].key} {fields[name].show(value)}"
        for name, value in values.items()
        if value is not None and (value or zeros)
    ]


MODELS = ("gemodel", "reorder", "duplicate", "corrupt")
"""Fields of a link's setting with models of loss and of other faults."""


def describe_loss(loss: float | None, monitored: Monitored | None) -> str:
    """Return the loss of packets as text, with any monitored delay: ``1 % lost, 55 ms one way``."""
    lost = "none arrived" if loss is None else f"{format_ratio(loss)} lost"
    return lost + one_way(monitored)


def one_way(monitored: Monitored | None) -> str:
    """Return the mean one-way delay as text to append: ``, 55 ms one way``; empty if unknown."""
    if monitored is None or monitored.delay_mean_us is None:
        return ""
    return f", {format_time_us(monitored.delay_mean_us)} one way"


def named(kind: str, name: str | None) -> str:
    """Return the name of something with its kind; the kind alone if the lab has not named it."""
    return kind if name is None else f"{kind} {name}"
