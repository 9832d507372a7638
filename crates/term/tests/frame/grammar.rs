//! The only sequences a frame may hold (threats row 6): the octets for a user's terminal are generated from cells,
//! never copied from a program's output.

use std::sync::LazyLock;

use rove_term::{Colors, Dialect, Emulation, LocalNames};

/// The machine that the user's terminal runs on goes by these, with any domain.
const OWN_HOSTS: [&str; 2] = ["desk", "tower"];
static LOCAL: LazyLock<LocalNames> =
    LazyLock::new(|| LocalNames::new("Desk.example.org", "127.0.1.1 tower desk"));

/// A user's terminal on that machine.
pub fn tty(term: &str, colorterm: &str) -> Dialect {
    Dialect::tty(term, colorterm).with_local_names(&LOCAL)
}

/// One sequence.
#[derive(Debug)]
enum Token<'a> {
    /// A printable character.
    Text,
    Control(u8),
    /// What follows ESC.
    Escape(&'a str),
    /// Prefix and parameters, then intermediate and final.
    Csi(&'a str, &'a str),
    /// The whole string.
    Osc(&'a str),
}

/// `Err` names the first sequence that is not in the grammar.
pub fn check(bytes: &[u8], dialect: &Dialect) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if let Some(tag) = stray_tag(text) {
        return Err(format!("{tag:?} outside a flag"));
    }
    // A rove peer is sent links and directories as they are: the client decides what its terminal gets.
    let peer = dialect.with_colors(Colors::Direct) == Dialect::ROVE;
    let mut rest = text;
    while !rest.is_empty() {
        let (token, after) = next(rest)?;
        let allowed = match (dialect.emulation(), &token) {
            (Emulation::Mosh, _) => is_stock(&token),
            (Emulation::Full, Token::Osc(string)) if !peer => {
                is_canonical(&token) && names_no_own_file(string)
            }
            (Emulation::Full, _) => is_canonical(&token),
        };
        if !allowed {
            return Err(format!("{token:?}"));
        }
        rest = after;
    }
    Ok(())
}

fn next(text: &str) -> Result<(Token<'_>, &str), String> {
    let Some(c) = text.chars().next() else { return Err("nothing".into()) };
    let after = &text[c.len_utf8()..];
    if c != '\x1b' {
        let control = c.is_control();
        if control && !c.is_ascii() {
            return Err(format!("{c:?}"));
        }
        let token = if control { Token::Control(c as u8) } else { Token::Text };
        return Ok((token, after));
    }
    if let Some(csi) = after.strip_prefix('[') {
        let parameters = csi.find(|c: char| !matches!(c, '0'..='?')).ok_or("CSI without end")?;
        let (parameters, rest) = csi.split_at(parameters);
        let last = rest.find(|c: char| matches!(c, '@'..='~')).ok_or("CSI without end")?;
        let (last, rest) = rest.split_at(last + 1);
        return Ok((Token::Csi(parameters, last), rest));
    }
    if let Some(osc) = after.strip_prefix(']') {
        let (string, rest) = osc.split_once('\x07').ok_or("OSC without end")?;
        return Ok((Token::Osc(string), rest));
    }
    let length = if after.starts_with(['#', '(']) { 2 } else { 1 };
    let escape = after.get(..length).ok_or("ESC without end")?;
    Ok((Token::Escape(escape), &after[length..]))
}

/// What a stock emulator implements (mosh-protocol.md §6), as far as frames need it.
fn is_stock(token: &Token<'_>) -> bool {
    match token {
        Token::Text => true,
        Token::Control(byte) => b"\x07\x08\n\r".contains(byte),
        Token::Escape(escape) => *escape == "M",
        Token::Csi(parameters, last) => match *last {
            "H" => are_numbers(parameters, 0..=2),
            "r" => parameters.is_empty() || are_numbers(parameters, 2..=2),
            "m" => parameters.split(';').all(|n| n.is_empty() || is_number(n)),
            "A" | "B" | "C" | "D" | "G" | "d" | "X" | "L" | "@" | "P" => {
                are_numbers(parameters, 0..=1)
            }
            "K" => parameters.is_empty(),
            "J" => ["", "2"].contains(parameters),
            "h" | "l" => parameters.strip_prefix('?').is_some_and(|mode| {
                let known = [
                    "5", "25", "2004", "1004", "9", "1000", "1001", "1002", "1003", "1005", "1006",
                    "1015",
                ];
                known.contains(&mode)
            }),
            _ => false,
        },
        Token::Osc(string) => {
            is_clean(string)
                && (starts_with_any(string, &["0;", "1;", "2;"])
                    || string.strip_prefix("52;c;").is_some_and(is_base64))
        }
    }
}

/// What our own emulator and the user's terminal are sent.
fn is_canonical(token: &Token<'_>) -> bool {
    match token {
        Token::Text => true,
        Token::Control(byte) => b"\x07\x08\n\r\x0f".contains(byte),
        Token::Escape(escape) => ["M", "#3", "#4", "#5", "#6", "(B"].contains(escape),
        Token::Csi(parameters, last) => match *last {
            "H" | "r" => are_numbers(parameters, 0..=2),
            "s" => are_numbers(parameters, 2..=2),
            "A" | "B" | "C" | "D" | "G" | "d" | "X" | "b" | "S" | "T" | "L" | "K" | "@" | "P" => {
                are_numbers(parameters, 0..=1)
            }
            "J" => ["", "2"].contains(parameters),
            "m" => {
                let level = parameters.strip_prefix(">4;").is_some_and(|n| are_numbers(n, 1..=1));
                let keys = level || *parameters == ">4";
                keys || parameters.split([';', ':']).all(|n| n.is_empty() || is_number(n))
            }
            "u" => parameters.starts_with('=') && are_numbers(&parameters[1..], 2..=2),
            " q" => are_numbers(parameters, 1..=1),
            "h" | "l" => are_numbers(parameters.trim_start_matches('?'), 1..=1),
            _ => false,
        },
        Token::Osc(string) => is_clean(string) && is_canonical_osc(string),
    }
}

fn is_canonical_osc(string: &str) -> bool {
    let color = |number: &str| {
        let (start, color) = string.split_once(";rgb:").unwrap_or((string, "00/00/00"));
        start.starts_with(number)
            && are_numbers(start, 1..=2)
            && color.len() == 8
            && color.bytes().all(|byte| byte == b'/' || byte.is_ascii_hexdigit())
    };
    let clipboard = |rest: &str| rest.split_once(';').is_some_and(|(_, data)| is_base64(data));
    starts_with_any(string, &["0;", "1;", "2;", "7;", "8;", "777;notify;", "99;"])
        || string.strip_prefix("133;").is_some_and(is_mark)
        || string.strip_prefix("52;").is_some_and(clipboard)
        || string.strip_prefix("9;4;").is_some_and(|rest| are_numbers(rest, 2..=2))
        || string.strip_prefix("9;").is_some_and(|text| !text.starts_with(|c: char| c.is_numeric()))
        || color("4")
        || color("1")
}

/// What a user's terminal is sent of directories and links: nothing that a click would run or that names a
/// file of the user's own machine.
fn names_no_own_file(string: &str) -> bool {
    if let Some(directory) = string.strip_prefix("7;") {
        return directory.is_empty() || is_foreign_file(directory);
    }
    let Some(uri) = string.strip_prefix("8;").and_then(|link| link.split_once(';')) else {
        return true;
    };
    let uri = uri.1.to_ascii_lowercase();
    uri.is_empty()
        || uri.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            && (starts_with_any(&uri, &["http://", "https://", "mailto:"]) || is_foreign_file(&uri))
}

fn is_foreign_file(uri: &str) -> bool {
    let uri = uri.to_ascii_lowercase();
    let Some((host, _)) = uri.strip_prefix("file://").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let labels: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    labels.iter().all(|label| !label.is_empty() && label.chars().all(plain))
        && !labels.iter().any(|label| label.contains("localhost"))
        && !OWN_HOSTS.contains(&labels[0])
        && !number(labels[labels.len() - 1])
        && !labels[labels.len() - 1].starts_with("0x")
}

/// The first tag character that is no part of an emoji flag sequence (UTS #51): a black flag, the letters
/// and digits of a region and its subdivision, and the cancel tag.
fn stray_tag(text: &str) -> Option<char> {
    let letter = |c: &char| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if matches!(c, '\u{e0000}'..='\u{e007f}') {
            return Some(c);
        }
        if c == '\u{1f3f4}' {
            let count = rest.chars().take_while(letter).count();
            if (3..=7).contains(&count) && rest.chars().nth(count) == Some('\u{e007f}') {
                rest = &rest[4 * (count + 1)..];
            }
        }
    }
    None
}

fn is_mark(mark: &str) -> bool {
    let status = mark.strip_prefix("D;").is_some_and(|status| status.parse::<u8>().is_ok());
    status || ["A", "A;k=s", "A;redraw=0", "B", "C", "D", "X"].contains(&mark)
}

fn starts_with_any(string: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| string.starts_with(start))
}

fn is_clean(string: &str) -> bool {
    !string
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

fn is_base64(data: &str) -> bool {
    data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

fn are_numbers(parameters: &str, count: std::ops::RangeInclusive<usize>) -> bool {
    if parameters.is_empty() {
        return count.contains(&0);
    }
    count.contains(&parameters.split(';').count()) && parameters.split(';').all(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
}
