//! What typed keys do: they are commands to the client, or go to the host.

use rove_ssp::Time;
use rove_term::KeyboardProtocol;
use zeroize::Zeroizing;

use crate::client::keys::Step;
use crate::client::{Cause, Client};

impl Client {
    pub(super) fn handle_typed(&mut self, now: Time, octets: &[u8]) {
        if !octets.is_empty() {
            let protocol = self.keyboard_protocol();
            self.typing.read(now, octets, &protocol);
            self.take_typed(now);
        }
    }

    /// The form in which the terminal sends keys and the one that the program wants, as of the last paint.
    pub(super) fn keyboard_protocol(&self) -> KeyboardProtocol {
        let screen = self.painter.shown().unwrap_or(self.endpoint().remote().screen());
        let properties = self.queries.told().properties();
        KeyboardProtocol::of(screen.modes(), &self.painter.dialect(), properties)
    }

    pub(super) fn take_typed(&mut self, now: Time) {
        let (plain, mut steps) = self.typing.take();
        let plain = Zeroizing::new(plain);
        let view_only = self.view().session().is_some_and(|session| session.view_only);
        if !view_only && self.connection.is_open() {
            self.take_keys(now, &plain, &mut steps);
        }
        for step in steps {
            if !matches!(step, Step::Untyped(_)) {
                self.bar.clear_help();
                self.panel = (step == Step::ShowStatus).then(|| self.figures().lines());
            }
            match step {
                Step::Typed(_) | Step::Untyped(_) if view_only => {}
                Step::Typed(octets) | Step::Untyped(octets) if octets.is_empty() => {}
                Step::Typed(octets) | Step::Untyped(octets) => {
                    self.send(now, &Zeroizing::new(octets));
                }
                Step::Repaint => self.painter.forget(),
                Step::Help => self.bar.help(self.connection.endpoint().remote().session()),
                Step::Detach(escape) => self.detach(now, escape),
                Step::HelpStuck => {
                    self.bar.help_stuck(self.connection.endpoint().remote().session())
                }
                // That was it.
                Step::ShowStatus | Step::HideStatus => {}
                Step::Suspend => self.suspend(),
                Step::Quit => self.close(now, Cause::Quit),
            }
        }
    }
}
