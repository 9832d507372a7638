//! Compares what was measured with the most that it may be.

use serde_json::{Value, json};

use crate::experiments::report::{Table, thousandths};
use crate::listener::Estimate;

/// A quantity, the most that it may be, and what was measured.
pub(super) struct Bar {
    name: &'static str,
    most: f64,
    found: Estimate,
}

impl Bar {
    pub(super) fn most(name: &'static str, most: f64, found: Estimate) -> Bar {
        Bar { name, most, found }
    }

    /// Whether it is met. A bar in the interval is neither met for sure nor missed.
    fn verdict(&self) -> &'static str {
        let Estimate { value, low, high } = self.found;
        match self.most {
            most if high <= most => "met",
            most if low > most => "not met",
            most if value <= most => "met, and the bar is within its interval",
            _ => "not met, and the bar is within its interval",
        }
    }
}

/// The bars, and the path for which they are claimed.
pub(super) fn table(claimed: &str, bars: &[Bar]) -> Table {
    let columns = "quantity | claimed for | at most | measured | 95 % | bar";
    let caption = "what was aimed at, and whether it is met";
    let mut table = Table::new(caption, 1, columns);
    for bar in bars {
        let Estimate { value, low, high } = bar.found;
        let interval = match low < high {
            true => json!(format!("{low:.3} to {high:.3}")),
            false => Value::Null,
        };
        table.rows.push(vec![
            json!(bar.name),
            json!(claimed),
            thousandths(bar.most),
            thousandths(value),
            interval,
            json!(bar.verdict()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_where_all_of_the_interval_is_below_it() {
        for (value, low, high, verdict) in [
            (1.0, 0.5, 2.0, "met"),
            (1.0, 0.5, 2.5, "met, and the bar is within its interval"),
            (2.2, 1.5, 2.5, "not met, and the bar is within its interval"),
            (2.2, 2.1, 2.5, "not met"),
            (2.0, 2.0, 2.0, "met"),
        ] {
            let bar = Bar::most("", 2.0, Estimate { value, low, high });
            assert_eq!(bar.verdict(), verdict, "{value}, {low} to {high}");
        }
        let rows = table("40 ms", &[Bar::most("keys", 2.0, Estimate::default())]).rows;
        assert_eq!(rows[0][4], Value::Null);
    }
}
