//! Plants leaks into what was captured, which the judge must find: one that does not find what is there finds nothing.

use serde_json::{Value, json};

use super::heard::{Heard, learn, planted};
use super::session::Played;
use crate::experiments::report::{Table, thousandths};

/// A session with fewer keys is too short to find them in.
const TELLING: usize = 200;

/// What the judge says with and without a leak.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planted {
    n: usize,
    /// Echoed or not: as captured, and with answers to echoed keys later.
    echoed: (f64, f64),
    /// Bits with lengths: as captured, and with shorter packets where there is no key.
    sizes: (f64, f64),
}

impl Planted {
    fn of(played: &Played, trip: f64) -> Planted {
        let keys = &played.keys;
        let (late, short) = planted(&played.text, keys, trip);
        let judged = |packets: &[Heard]| learn(&[(packets, &keys[..])], trip, None, 1);
        let (plain, late, short) = (judged(&played.text), judged(&late), judged(&short));
        Planted {
            n: keys.len(),
            echoed: (plain.echoed.value, late.echoed.value),
            sizes: (plain.sizes.value, short.sizes.value),
        }
    }

    pub(super) fn is_found(&self) -> bool {
        self.echoed.1 > self.echoed.0 + 0.1 && self.sizes.1 > self.sizes.0 + 0.5
    }
}

/// What became of the leaks that are planted into a session.
pub(super) enum Check {
    Planted(Planted),
    /// The session has too few keys to find anything in it: this many.
    TooShort(usize),
}

impl Check {
    pub(super) fn of(played: &Played, trip: f64) -> Check {
        match played.keys.len() {
            few @ ..TELLING => Check::TooShort(few),
            _ => Check::Planted(Planted::of(played, trip)),
        }
    }
}

pub(super) fn of_leaks<'a>(found: impl Iterator<Item = &'a Check>) -> Table {
    let columns = "leak | n | measure | as captured | planted";
    let caption =
        "leaks planted into what was captured of rove --obscure, which the judge must find";
    let mut table = Table::new(caption, 2, columns);
    for check in found {
        let it = match check {
            Check::Planted(planted) => planted,
            Check::TooShort(keys) => {
                let leak = format!("none: a session with fewer than {TELLING} keys is not checked");
                let none = || Value::Null;
                table.rows.push(vec![json!(leak), json!(keys), none(), none(), none()]);
                continue;
            }
        };
        for (leak, measure, (plain, planted)) in [
            ("answers to echoed keys 0.5 ms later", "echoed or not, AUC", it.echoed),
            ("packets up without a key an octet shorter", "bits with lengths", it.sizes),
        ] {
            let n = json!(it.n);
            let values = [plain, planted].map(thousandths);
            let [plain, planted] = values;
            table.rows.push(vec![json!(leak), n, json!(measure), plain, planted]);
        }
    }
    table
}
