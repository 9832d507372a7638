//! Each number of the wire that the code has stands in the documents, where others read it.
#![allow(clippy::unwrap_used, reason = "a test file")]

use std::fs;
use std::path::Path;

/// A file, the constants of one type in it, and of each its value and what a document says of it.
struct Numbers {
    file: &'static str,
    kind: &'static str,
    all: &'static [(&'static str, &'static str, &'static str)],
}

const NUMBERS: [Numbers; 5] = [
    Numbers {
        file: "ssp/src/wire/native/header.rs",
        kind: "u8",
        all: &[
            ("AGAIN", "1 << 0", "bits: 0 *again*,"),
            ("ACK_ONLY", "1 << 1", " 1 *ack only*,"),
            ("REPLY", "1 << 2", " 2 reply,"),
            ("REPORT", "1 << 3", " 3 report,"),
            ("MISSING", "1 << 4", " 4 missing,"),
            ("CONTROL", "1 << 5", " 5 control,"),
            ("MEASURES", "1 << 6", " 6 measures;"),
            ("PADDING", "0", "| 0 | | no length:"),
            ("CHALLENGE", "1", "| 1 | 8 | a question"),
            ("RESPONSE", "2", "| 2 | 8 | the answer"),
            ("ANNOUNCE", "3", "| 3 | 5 or more | what the sender could speak"),
            ("SLOT", "4", "| 4 | 4 | a slot"),
        ],
    },
    Numbers {
        file: "ssp/src/wire/native/message.rs",
        kind: "u8",
        all: &[
            ("DEFLATED", "1 << 0", "bits: 0 deflated,"),
            ("CHAFF", "1 << 1", " 1 chaff,"),
            ("IDLE", "1 << 2", " 2 idle,"),
            ("ANNOUNCES", "1 << 3", " 3 announcement;"),
            ("KNOWN", "DEFLATED | CHAFF | IDLE | ANNOUNCES", "another that is set makes"),
            ("LAST", "1 << 6", "bit 6: it is the last;"),
            ("WHOLE", "1 << 5", "bit 5: it is the only one"),
            ("PARITY", "1 << 7", "bit 7: it is none, but parity"),
            ("COUNT", "0x1f", "bits 4-0: the number of fragments, less one"),
        ],
    },
    Numbers {
        file: "ssp/src/wire.rs",
        kind: "u32",
        all: &[
            ("PARITY", "1 << 0", "bit 0, the lowest of the big-endian word, is parity"),
            ("SLOTS", "1 << 2", "bit 2 says that slots are answered"),
        ],
    },
    Numbers {
        file: "session/src/messages/fields.rs",
        kind: "u32",
        all: &[
            ("TOP_INSTRUCTION", "1", "field 1 = repeated Instruction"),
            ("EXT_OCTETS", "2", "| client to server | 2 | keystroke | 4: bytes keys |"),
            ("OCTETS", "4", "| server to client | 2 | hostbytes | 4: bytes hoststring |"),
            ("EXT_RESIZE", "3", "| client to server | 3 | resize |"),
            ("RESIZE_WIDTH", "5", " 5: int32 width,"),
            ("RESIZE_HEIGHT", "6", " 6: int32 height |"),
            ("EXT_ECHO_ACK", "7", "| server to client | 7 | echoack |"),
            ("ECHO_ACK_NUM", "8", " 8: uint64 echo_ack_num |"),
            ("EXT_LINE", "16", "| 16 | server |"),
            ("LINE_MODES", "1", "| 16 | server | 1: what the program's terminal line does"),
            ("LINE_NUMBER", "2", "; 2: which hidden line it is"),
            ("EXT_EXIT_STATUS", "17", "| 17 | server |"),
            ("EXIT_STATUS_CODE", "1", "| 17 | server | 1: the exit status"),
            ("EXT_PROPERTIES", "18", "| 18 | client |"),
            ("EXT_DEPTH", "19", "| 19 | server |"),
            ("DEPTH_DEPTH", "1", "1: the depth,"),
            ("DEPTH_TOLD", "2", "2: lines before this position are told"),
            ("DEPTH_ERASED", "3", "3: lines before this position were erased"),
            ("DEPTH_FALLS", "5", "5: how often lines are told again"),
            ("EXT_ROWS", "20", "| 20 | server |"),
            ("ROWS_FIRST", "1", "1: the position of the first"),
            ("ROWS_COLS", "2", "2: the columns of their rows"),
            ("ROWS_COUNT", "3", "3: how many lines that is"),
            ("ROWS_KEPT", "4", "4: how many lines, from the first on,"),
            ("ROWS_TEXT", "5", "5: the text of others"),
            ("ROWS_OPEN", "6", "6: 1 if the last row's line goes on"),
            ("EXT_SESSION", "21", "| 21 | server |"),
            ("SESSION_NAME", "1", "1: its name;"),
            ("SESSION_FLAGS", "2", "; 2: 1 if the client"),
            ("SESSION_OTHERS", "3", "; 3: how many other clients"),
            ("SESSION_ENDED", "4", "; 4: why it ends for this client alone"),
            ("SESSION_WHO", "5", "; 5: the address of"),
            ("EXT_LEAVING", "22", "| 22 | client |"),
            ("LEAVING_HOW", "1", "| 22 | client | 1: how the client leaves"),
            ("EXT_LINES", "23", "| 23 | client |"),
            ("LINES_WANTED", "1", "1: how many lines that the client missed"),
            ("LINES_FORMAT", "2", "2: the form of their text, 1"),
        ],
    },
    Numbers {
        file: "session/src/messages/properties.rs",
        kind: "u32",
        all: &[
            ("FOREGROUND", "1", "1, 2, 3: foreground, background, cursor"),
            ("BACKGROUND", "2", "1, 2, 3: foreground, background, cursor"),
            ("CURSOR", "3", "1, 2, 3: foreground, background, cursor"),
            ("SCHEME", "4", "; 4: colour scheme,"),
            ("CELL_WIDTH", "5", "; 5, 6: a cell's width and height"),
            ("CELL_HEIGHT", "6", "; 5, 6: a cell's width and height"),
            ("SAVES_ERASED", "7", "; 7: what puts the lines of an erased screen"),
            ("PALETTE", "16", "; 16 to 31: the palette's first 16 entries"),
        ],
    },
];

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The constants of this type in a source text, and their values.
fn constants(text: &str, kind: &str) -> Vec<(String, String)> {
    let declared = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line
            .strip_prefix("pub ")
            .or(line.strip_prefix("pub(crate) "))
            .or(line.strip_prefix("pub(super) "))
            .unwrap_or(line);
        let (name, rest) = line.strip_prefix("const ")?.split_once(": ")?;
        let value = rest.strip_prefix(kind)?.strip_prefix(" = ")?.strip_suffix(';')?;
        Some((name.to_owned(), value.to_owned()))
    });
    declared.collect()
}

#[test]
fn each_number_stands_in_the_documents() {
    let documents = read("../docs/wire.md") + &read("../docs/mosh-protocol.md");
    for Numbers { file, kind, all } in NUMBERS {
        let mut found = constants(&read(file), kind);
        let mut known: Vec<_> =
            all.iter().map(|(name, value, _)| (name.to_string(), value.to_string())).collect();
        found.sort();
        known.sort();
        assert_eq!(found, known, "{file}: say in docs/wire.md what changed, and here where");
        for (name, _, says) in all {
            assert!(documents.contains(says), "{name} of {file}: no document says {says:?}");
        }
    }
}
