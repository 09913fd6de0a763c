"""Rules between classes and the steps of a timeline that refer to them.

A step may wait for the end of traffic, so that the order of two steps may be unknown: only steps
that fail in any order are mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ccplay.model.commands import SetClasses, SetLink, SetQdisc
from ccplay.model.network import Network
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.values import LinkSetting
from ccplay.scenario.fields.network import directions
from ccplay.scenario.fields.timeline import Draft
from ccplay.scenario.file.mistakes import Mistakes


def check_classes(
    drafts: list[Draft], links: Mapping[str, LinkSetting], network: Network, mistakes: Mistakes
) -> None:
    """Record queues of classes that a link never has, and classes that have no rate to share."""
    known = _Links(drafts, links, network)
    for draft in drafts:
        match draft.command:
            case SetQdisc(link=link, traffic_class=wanted):
                if problem := known.queue_problem(link, wanted):
                    place = draft.place if wanted is None else draft.at("traffic_class")
                    mistakes.add(place, problem)
            case SetClasses(link=link, classes=classes):
                if classes and not known.may_have_a_rate(link):
                    mistakes.add(draft.place, "classes share a rate: the link has none")
            case SetLink(link=link, rate=0):
                if known.always_has_classes(link):
                    mistakes.add(draft.at("rate"), "the link has classes, which need a rate")


class _Links:
    """The classes that each direction of a link may ever have, and whether it has a rate."""

    def __init__(
        self, drafts: list[Draft], links: Mapping[str, LinkSetting], network: Network
    ) -> None:
        self._network = network
        self._at_first: dict[str, tuple[str, ...]] = {}
        self._ever: dict[str, dict[str, None]] = {}
        self._once_without: set[str] = set()
        self._rated = set(network.observed)
        for link, setting in links.items():
            for each in directions(self._network, link):
                if setting.classes is not None:
                    self._at_first[each] = tuple(one.name for one in setting.classes)
                if setting.rate:
                    self._rated.add(each)
        for each, first in self._at_first.items():
            self._note(each, first)
        for draft in drafts:
            match draft.command:
                case SetClasses(link=link, classes=classes):
                    for each in directions(self._network, link):
                        self._note(each, tuple(one.name for one in classes))
                case SetLink(link=link, rate=int(rate)) if rate:
                    self._rated.update(directions(self._network, link))

    def queue_problem(self, link: str, wanted: str | None) -> str | None:
        """Return why the queue of a class never exists; None stands for the link's own queue."""
        for each in directions(self._network, link):
            there = self._ever.get(each, {})
            if wanted is None and self._has_classes(each):
                names = ", ".join(map(quote, self._at_first[each]))
                return f"class is missing: the link has a queue for each of {names}"
            if wanted is not None and wanted not in there:
                return f"the link has no class {quote(wanted)}{did_you_mean(wanted, there)}"
        return None

    def always_has_classes(self, link: str) -> bool:
        """Return whether at least one direction has classes in any order of the steps."""
        return any(self._has_classes(each) for each in directions(self._network, link))

    def may_have_a_rate(self, link: str) -> bool:
        """Return whether all directions may have a rate at some time."""
        return all(each in self._rated for each in directions(self._network, link))

    def _note(self, direction: str, classes: tuple[str, ...]) -> None:
        """Record that a direction has these classes at some time."""
        self._ever.setdefault(direction, {}).update(dict.fromkeys(classes))
        if not classes:
            self._once_without.add(direction)

    def _has_classes(self, direction: str) -> bool:
        """Return whether a direction has classes from the start, and always."""
        return direction in self._at_first and direction not in self._once_without
