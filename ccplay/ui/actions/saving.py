"""Keys that save a picture of the screen, or the session as a scenario."""

from __future__ import annotations

from pathlib import Path

from ccplay.files import writing
from ccplay.ui.actions.base import Actions


class SavingActions(Actions):
    """The keys that write files."""

    def action_picture(self) -> None:
        """Save the screen as an SVG picture in the current folder."""
        t = self.playhead.t
        name = f"ccplay-{int(t // 60):02d}m{t % 60:04.1f}s"
        drawn = self.app.export_screenshot()
        try:
            path = writing.write_numbered(Path(), name, ".svg", drawn)
        except OSError as error:
            said = f"can't save {name}.svg: {error.strerror}"
            self.app.notify(said, severity="error", markup=False)
        else:
            self.app.notify(f"saved {path}", markup=False)

    def action_save_scenario(self) -> None:
        """Ask for a file, and write the session into it as a scenario."""
        if not self.is_ready(ready=self.session.state.ready_at is not None):
            return
        from ccplay.ui.dialogs.saving import SaveDialog  # noqa: PLC0415 - first paint shall not wait for it

        dialog = SaveDialog(self.session.state, self.playhead, self.session.title)
        self.app.push_screen(dialog, self._saved)

    def _saved(self, path: Path | None) -> None:
        if path is not None:
            from ccplay.scenario.rules.custom_algorithms import rerun  # noqa: PLC0415 - paint first

            command = rerun(path, self.session.state, self.lab_words)
            self.app.notify(f"saved {path}; to repeat it: {command}", timeout=10, markup=False)
