//! In what the two ends of a session differ, once nothing is on its way any more: text, pictures and histories.

use rove_session::client::TtyScreen;
use rove_term::screen::Buffer;
use rove_term::{Screen, project};

use super::Trial;
use crate::compare::{are_same, differences};
use crate::rng::Chance;

impl Trial<'_> {
    /// The differences that remain between the ends.
    pub(super) fn divergence(&mut self) -> Option<String> {
        let (client, server) = (self.session.client(), self.session.server());
        let (typed, read) = (client.user.typed(), server.host.typed());
        if typed != read {
            let common = typed.iter().zip(read).take_while(|(a, b)| a == b).count();
            return Some(format!(
                "{} octets typed, {} read, the first {common} equal",
                typed.len(),
                read.len()
            ));
        }
        let view = client.client.view().screen();
        if let Some(difference) = differences(view, server.server.screen()).first() {
            return Some(format!("the client's view: {difference}"));
        }
        if let Some(difference) = self.unpainted() {
            return Some(format!("the client's terminal: {difference}"));
        }
        // A terminal without another screen is cleared for a session that takes all of it.
        let keeps = self.scenario.usage.window != TtyScreen::Alternate;
        let is_sure = self.scenario.resizes == Chance::NEVER && keeps;
        let unlike = self.unlike_history();
        let theirs = || self.session.client().tty.keeps_theirs().err().filter(|_| is_sure);
        let unlike = unlike.or_else(theirs);
        unlike.map(|difference| format!("the terminal's history: {difference}"))
    }

    /// A line that the client was told otherwise than the program has it, or the newest one in which the history of the
    /// user's terminal differs from that, if the client asked for lines. Where the window had one size all the time there
    /// is none, unless lines wait for the end of another screen.
    fn unlike_history(&mut self) -> Option<String> {
        let (client, server) = (self.session.client(), self.session.server());
        let past = client.client.view().past()?;
        let meant = server.server.history();
        let depth = meant.end();
        if (past.depth(), past.told()) != (depth, depth) || client.client.lines_due().is_some() {
            return Some(format!("{} of {depth} lines are told", past.told()));
        }
        // Also where a resize may have left lines twice in the terminal's history.
        if let Some(told) = client.client.lines_told()
            && let Some(other) = self.lines.unlike_told(told, meant)
        {
            return Some(other);
        }
        let on_alternate = client.client.view().screen().buffer() == Buffer::Alternate;
        if on_alternate || self.scenario.resizes != Chance::NEVER {
            return None;
        }
        let looks = (client.looks_from(), client.client.dialect());
        self.lines.unlike_shown(client.tty.history(), meant, looks)
    }

    /// The first difference between the user's terminal and the program's.
    pub(super) fn unpainted(&self) -> Option<String> {
        let shown = self.session.client().session();
        differences(&shown, &self.wanted()).first().map(ToString::to_string)
    }

    /// The program's screen as the user's terminal can show it.
    pub(super) fn wanted(&self) -> Screen {
        let (client, server) = (self.session.client(), self.session.server());
        project(server.server.screen(), &client.client.dialect())
    }

    /// Whether the terminal shows anything else than the client's newest view.
    pub(super) fn unpainted_view(&self) -> bool {
        let client = self.session.client();
        let wanted = project(client.client.view().screen(), &client.client.dialect());
        !are_same(&client.session(), &wanted)
    }
}
