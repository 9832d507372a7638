//! The only sequences a frame may hold (threats row 6): what reaches a user's terminal was
//! generated from cells, whatever the screen was made of.

use rove_term::{Dialect, Emulation};

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
    let mut rest = text;
    while !rest.is_empty() {
        let (token, after) = next(rest)?;
        let allowed = match dialect.emulation() {
            Emulation::Mosh => is_stock(&token),
            Emulation::Full => is_canonical(&token),
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
        || color("4")
        || color("1")
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
