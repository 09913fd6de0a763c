"""Actions that save a picture of the screen, or the session as a scenario."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ccplay.errors import UsageError
from ccplay.ui.actions.base import Actions


class SavingActions(Actions):
    """The actions that write files."""

    def action_picture(self) -> None:
        """Save the screen as an SVG and a PNG picture in the current folder."""
        from ccplay.ui.pictures.cells import Frame, frame_of  # noqa: PLC0415 - after first paint
        from ccplay.ui.pictures.files import DRAWN, stem, write_new  # noqa: PLC0415 - after first paint

        async def save(frame: Frame, name: str) -> None:
            for suffix in DRAWN:
                try:
                    # In a thread: a PNG takes a second to draw.
                    path = await asyncio.to_thread(write_new, frame, name, suffix, Path())
                except OSError as error:
                    text = f"can't save {name}{suffix}: {error.strerror}"
                    self.app.notify(text, severity="error", markup=False)
                except UsageError as error:
                    self.app.notify(str(error), severity="warning", markup=False)
                else:
                    self.app.notify(f"saved {path}", markup=False)

        frame, name = frame_of(self.app), stem(self.playhead.t)
        self.run_worker(save(frame, name), group="pictures")

    def action_save_scenario(self) -> None:
        """Ask for a file, and save the session into it as a scenario."""
        if not self.is_ready(ready=self.session.state.ready_at is not None):
            return
        from ccplay.ui.dialogs.saving import SaveDialog  # noqa: PLC0415 - after first paint

        dialog = SaveDialog(self.session.state, self.playhead, self.session.title)
        self.app.push_screen(dialog, self._saved)

    def _saved(self, path: Path | None) -> None:
        if path is not None:
            from ccplay.scenario.rules.custom_algorithms import rerun  # noqa: PLC0415 - paint first

            command = rerun(path, self.session.state, self.lab_words)
            self.app.notify(f"saved {path}; to repeat it: {command}", timeout=10, markup=False)
