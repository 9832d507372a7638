//! Sessions as people and programs read them.

use std::fmt::Write;

use crate::printable::printable;
use crate::sessions::age::span;
use crate::sessions::line::{Clients, Kind, Session, State};

/// Characters of a program's name.
const COMMAND_CHARS_MAX: usize = 40;

/// Something that happened so recently is now.
const NOW_SECONDS: u64 = 10;

/// A session, and what `-l` tells besides.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) session: Session,
    /// Its program's words.
    pub(super) line: Option<String>,
}

/// One session a line, the one used last first.
pub(super) fn table(found: &[Found], is_long: bool) -> String {
    let mut rows: Vec<Vec<String>> =
        vec![["NAME", "COMMAND", "AGE", "USED", "CLIENTS", "SIZE"].map(str::to_owned).to_vec()];
    if is_long {
        rows[0].push("ID".into());
    }
    for Found { session, line } in found {
        let command = printable(&session.command, COMMAND_CHARS_MAX);
        let command = line.as_ref().filter(|_| is_long).cloned().unwrap_or(command);
        let mut row = vec![
            session.name.to_string(),
            command,
            span(session.age),
            ago(session.used),
            clients(session),
            format!("{}x{}", session.size.cols, session.size.rows),
        ];
        row.extend(is_long.then(|| session.id.to_string()));
        rows.push(row);
    }
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // A string takes all that is written to it.
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn ago(seconds: u64) -> String {
    if seconds < NOW_SECONDS { "now".into() } else { format!("{} ago", span(seconds)) }
}

fn clients(session: &Session) -> String {
    match (session.state, &session.clients) {
        (State::Ended(status), _) => format!("ended with status {status}"),
        (_, Clients::There(addresses)) => {
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        (_, Clients::Left(seconds)) => format!("none, left {}", ago(*seconds)),
        (_, Clients::Lost(seconds)) => format!("none, lost {}", ago(*seconds)),
        (_, Clients::None) => "none yet".into(),
    }
}

/// One JSON object.
pub(super) fn json(host: &str, machine: &str, found: &[Found]) -> String {
    let mut text = format!("{{\"host\": {}, \"machine\": {}, ", quoted(host), quoted(machine));
    text.push_str("\"sessions\": [");
    let mut before = "";
    for Found { session, line } in found {
        let kind = match session.kind {
            Kind::Shell => "shell",
            Kind::Command => "command",
        };
        let (state, status) = match session.state {
            State::Waiting => ("waiting", None),
            State::Running => ("running", None),
            State::Ended(status) => ("ended", Some(status)),
        };
        let command = String::from_utf8_lossy(&session.command);
        let (left, lost) = match session.clients {
            Clients::Left(seconds) => (Some(seconds), None),
            Clients::Lost(seconds) => (None, Some(seconds)),
            _ => (None, None),
        };
        let clients = match &session.clients {
            Clients::There(addresses) => {
                addresses.iter().map(|it| quoted(&it.to_string())).collect()
            }
            _ => Vec::new(),
        };
        let fields = [
            ("name", quoted(session.name.as_str())),
            ("id", quoted(&session.id.to_string())),
            ("kind", quoted(kind)),
            ("command", quoted(&command)),
            ("command_line", line.as_ref().map_or("null".into(), |line| quoted(line))),
            ("age", session.age.to_string()),
            ("used", session.used.to_string()),
            ("state", quoted(state)),
            ("status", or_null(status)),
            ("clients", format!("[{}]", clients.join(", "))),
            ("left", or_null(left)),
            ("lost", or_null(lost)),
            ("columns", session.size.cols.to_string()),
            ("rows", session.size.rows.to_string()),
        ];
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        let _ = write!(text, "{before}\n  {{{}}}", fields.join(", "));
        before = ",";
    }
    text.push_str(if found.is_empty() { "]}\n" } else { "\n]}\n" });
    text
}

fn or_null(value: Option<impl ToString>) -> String {
    value.map_or("null".into(), |value| value.to_string())
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\0'..=' ' if c != ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Vec<Found> {
        [
            "SESSION 1 work 0000002a shell 10800 120 212x50 running here:203.0.113.9 7 vim",
            "SESSION 1 1 0000002b shell 172800 50400 80x24 running left:50400 0 bash",
            "SESSION 1 2 0000002c command 18000 3 80x24 running lost:10800 0 make",
            "SESSION 1 3 0000002d command 3600 540 80x24 ended:1 none 0 a%22%0Ab",
        ]
        .map(|line| Found {
            session: Session::parse(line).unwrap(),
            line: (line.contains("vim")).then(|| "vim main.rs".into()),
        })
        .into()
    }

    #[test]
    fn for_people() {
        assert_eq!(
            table(&found(), false),
            "\
NAME  COMMAND  AGE  USED       CLIENTS              SIZE
work  vim      3 h  2 min ago  203.0.113.9          212x50
1     bash     2 d  14 h ago   none, left 14 h ago  80x24
2     make     5 h  now        none, lost 3 h ago   80x24
3     a\"?b     1 h  9 min ago  ended with status 1  80x24
"
        );
        let long = table(&found(), true);
        assert!(long.contains("work  vim main.rs  ") && long.contains("0000002a\n"), "{long}");
    }

    #[test]
    fn for_programs() {
        assert_eq!(
            json("h", "m", &[]),
            "{\"host\": \"h\", \"machine\": \"m\", \"sessions\": []}\n"
        );
        let text = json("h", "m", &found());
        for part in [
            "\"command\": \"a\\\"\\u000ab\"",
            "\"clients\": [\"203.0.113.9\"], \"left\": null",
            "\"left\": 50400, \"lost\": null, \"columns\": 80, \"rows\": 24}",
            "\"state\": \"ended\", \"status\": 1",
            "\"command_line\": \"vim main.rs\"",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
