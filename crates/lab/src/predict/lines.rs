//! Infers the terminal line's mode for recordings that lack it, from the program on the screen and the keys typed.
//! This is an estimate for comparison; our own recordings hold the mode that a real terminal reported.

use rove_session::predict::LineMode;

use super::trace::{Event, Kind, Trace};

/// Programs that read lines at a prompt in raw mode and leave the line cooked while a command runs.
const LINE_READERS: [&str; 5] = ["shell", "bash", "zsh", "fish", "python"];

/// The marker of a password prompt in the shared recordings.
const PASSWORD: &str = "password";

impl Trace {
    /// The same with events of the terminal line; as it is if it has any.
    ///
    /// Line readers are raw from their prompt on and cooked from each Enter to the last output before the
    /// next key; a password prompt hides; all other programs are raw throughout.
    pub fn with_inferred_lines(mut self) -> Self {
        if self.events.iter().any(|event| matches!(event.kind, Kind::Line(_))) {
            return self;
        }
        let mut out: Vec<Event> = Vec::with_capacity(self.events.len());
        let (mut reads_lines, mut prompt) = (false, None);
        for (number, event) in self.events.iter().enumerate() {
            let line = |mode| Event { at: event.at, kind: Kind::Line(mode) };
            match &event.kind {
                Kind::Program(name) => {
                    reads_lines = LINE_READERS.contains(&name.as_str());
                    let hides = name == PASSWORD;
                    out.push(line(if hides { LineMode::Hidden } else { LineMode::Raw }));
                }
                Kind::Output(_) if prompt == Some(number) => out.push(line(LineMode::Raw)),
                _ => {}
            }
            out.push(event.clone());
            if reads_lines && event.kind == Kind::Key(b"\r".to_vec()) {
                out.push(line(LineMode::Cooked));
                prompt = self.prompt_after(number);
            }
        }
        self.events = out;
        self
    }

    /// The last output before the first key that was typed after any.
    fn prompt_after(&self, enter: usize) -> Option<usize> {
        let mut last = None;
        for (number, event) in self.events.iter().enumerate().skip(enter + 1) {
            match event.kind {
                Kind::Output(_) => last = Some(number),
                Kind::Key(_) if last.is_some() => break,
                _ => {}
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_shell() {
        let text = "{\"version\": 2, \"width\": 80, \"height\": 24}\n[0, \"m\", \"shell\"]\n\
                    [0, \"o\", \"$ \"]\n[1, \"i\", \"\\r\"]\n[1, \"o\", \"one\"]\n[2, \"o\", \"$ \"]\n\
                    [3, \"m\", \"password\"]\n[4, \"i\", \"\\r\"]\n";
        let trace = Trace::parse(String::new(), text).unwrap().with_inferred_lines();
        let told: String = trace
            .events
            .iter()
            .map(|event| match &event.kind {
                Kind::Output(_) => 'o',
                Kind::Key(_) => 'k',
                Kind::Program(_) => 'm',
                Kind::Line(LineMode::Cooked) => 'C',
                Kind::Line(LineMode::Hidden) => 'H',
                Kind::Line(LineMode::Raw) => 'R',
            })
            .collect();
        assert_eq!(told, "RmokCoRoHmk");
        let again = trace.clone().with_inferred_lines();
        assert_eq!(again.events.len(), trace.events.len());
    }
}
