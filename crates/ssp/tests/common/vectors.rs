//! The file of examples (`docs/wire.md` §11), which tests of two crates fill.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

const FILE: &str = "../ssp/tests/native-vectors.json";

/// What the file has.
pub fn kept() -> Map<String, Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Compares these parts with the file's. With `ROVE_WRITE_VECTORS` in the environment they replace
/// them first.
pub fn check(made: &Value) {
    let made = made.as_object().unwrap();
    let mut all = kept();
    if std::env::var_os("ROVE_WRITE_VECTORS").is_some() {
        all.extend(made.clone());
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        std::fs::write(file, format!("{:#}\n", Value::from(all.clone()))).unwrap();
    }
    for (name, part) in made {
        assert_eq!(Some(part), all.get(name), "{name}");
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The octets of a hexadecimal text.
pub fn octets(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap().as_bytes();
    let octet = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

/// The entries of a list.
pub fn list(list: &Value) -> &[Value] {
    let list = list.as_array().unwrap();
    assert!(!list.is_empty());
    list
}
