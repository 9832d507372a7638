//! A real tmux as the user's terminal.

use std::path::PathBuf;
use std::process::Command;

use rove_lab::testing::scratch::Scratch;

use crate::common::rove_program;
use crate::host::{Host, Outcome, bounded, clean, until, words};

/// A tmux of its own that runs a line for bash, in which `$ROVE` is rove with ssh's configuration, and `$SSH` is ssh.
pub struct Tmux<'a> {
    host: &'a Host,
    scratch: Scratch,
}

impl<'a> Tmux<'a> {
    pub fn start(host: &'a Host, line: &str) -> Result<Tmux<'a>, String> {
        let tmux = Tmux { host, scratch: Scratch::new().map_err(words)? };
        let settings = "set -g history-limit 50000\nset -g status off\nset -g remain-on-exit on\n";
        std::fs::write(tmux.settings(), settings).map_err(words)?;
        let config = host.config.display();
        let rove = format!("ROVE='{} -F {config}'", rove_program().display());
        let line = format!("{rove}; SSH='ssh -q -t -F {config}'; {line}");
        tmux.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "bash", "--norc", "-c", &line])?;
        Ok(tmux)
    }

    fn settings(&self) -> PathBuf {
        self.scratch.join("settings")
    }

    fn command(&self) -> Command {
        let mut command = bounded("tmux");
        command.arg("-S").arg(self.scratch.join("socket")).arg("-f").arg(self.settings());
        command.current_dir(self.host.near()).env("HOME", self.host.near()).env("LANG", "C.UTF-8");
        command.env_remove("TMUX").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        command
    }

    pub fn tmux(&self, words: &[&str]) -> Result<String, String> {
        let mut command = self.command();
        command.args(words);
        clean(command)
    }

    pub fn type_line(&self, line: &str) -> Outcome {
        self.tmux(&["send-keys", "-l", line])?;
        self.tmux(&["send-keys", "Enter"]).map(drop)
    }

    /// All lines as they are drawn, those of the history first.
    pub fn picture(&self) -> Result<String, String> {
        self.tmux(&["capture-pane", "-p", "-e", "-S", "-"])
    }

    /// Where the cursor is.
    pub fn cursor(&self) -> Result<String, String> {
        self.tmux(&["display-message", "-p", "#{cursor_x},#{cursor_y}"])
    }

    /// Another window.
    pub fn resize(&self, cols: u16, rows: u16) -> Outcome {
        let (cols, rows) = (cols.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &cols, "-y", &rows]).map(drop)
    }

    /// The rows of the screen.
    pub fn screen(&self) -> Result<Vec<String>, String> {
        let rows = self.tmux(&["capture-pane", "-p"])?;
        Ok(rows.lines().map(|row| row.trim_end().to_owned()).collect())
    }

    /// All lines, those of the history first, wrapped ones whole.
    pub fn lines(&self) -> Result<Vec<String>, String> {
        let all = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])?;
        Ok(all.lines().map(|line| line.trim_end().to_owned()).collect())
    }

    /// Those that are numbers.
    pub fn numbers(&self) -> Result<Vec<u32>, String> {
        Ok(self.lines()?.iter().filter_map(|line| line.parse().ok()).collect())
    }

    /// Waits for a line that is this one.
    pub fn wait_for(&self, line: &str) -> Outcome {
        let is_there = || Some(self.lines().ok()?.iter().any(|shown| shown == line));
        let found = until(line, || is_there().filter(|found| *found));
        found.map(drop).map_err(|error| format!("{error}: {:?}", self.lines()))
    }

    /// Waits for a line that begins so.
    pub fn wait_for_start(&self, begins: &str) -> Outcome {
        let is_there = || Some(self.lines().ok()?.iter().any(|line| line.starts_with(begins)));
        let found = until(begins, || is_there().filter(|found| *found));
        found.map(drop).map_err(|error| format!("{error}: {:?}", self.lines()))
    }

    /// Waits until the numbers are exactly these. Missed lines come last.
    pub fn has_all(&self, from: u32, to: u32) -> Outcome {
        let wanted: Vec<u32> = (from..=to).collect();
        let is_so = || (self.numbers().ok()? == wanted).then_some(());
        until("all lines", is_so).map_err(|error| {
            let numbers = self.numbers().unwrap_or_default();
            let same = wanted.iter().zip(&numbers).take_while(|(a, b)| a == b).count();
            let around = numbers.get(same.saturating_sub(2)..numbers.len().min(same + 5));
            format!("{error}: {} lines, of which {same} are right: {around:?}", numbers.len())
        })
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}
