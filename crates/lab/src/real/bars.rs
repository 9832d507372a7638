//! Compares what was measured with the most that it may be.

use serde_json::{Value, json};

use crate::experiments::report::{Table, tenths, thousandths};
use crate::listener::Estimate;

/// A quantity, the most that it may be, and what was measured.
pub(super) struct Bar {
    name: String,
    most: f64,
    found: Estimate,
}

impl Bar {
    pub(super) fn most(name: impl Into<String>, most: f64, found: Estimate) -> Bar {
        Bar { name: name.into(), most, found }
    }

    /// One whose quantity has no interval.
    pub(super) fn exact(name: impl Into<String>, most: f64, value: f64) -> Bar {
        Bar::most(name, most, Estimate { value, low: value, high: value })
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

/// Bars without intervals, and how many samples each rests on. The columns are the name, what was measured, the most
/// that it may be, the number of samples and the verdict.
pub(super) fn counted(columns: &'static str, bars: &[(Bar, usize)]) -> Table {
    let mut table = Table::new("bars", 1, columns);
    for (bar, n) in bars {
        let (found, most) = (tenths(bar.found.value), tenths(bar.most));
        table.rows.push(vec![json!(bar.name), found, most, json!(n), json!(bar.verdict())]);
    }
    table
}

/// Bars with intervals, and the path for which they are claimed.
pub(super) fn claimed(path: &str, bars: &[Bar]) -> Table {
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
            json!(path),
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
        let rows = claimed("40 ms", &[Bar::most("keys", 2.0, Estimate::default())]).rows;
        assert_eq!(rows[0][4], Value::Null);
    }
}
