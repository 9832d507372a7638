//! Command-line flags that describe an emulated link.

use std::time::Duration;

use clap::Args;

use crate::link::{Jitter, Order, Profile};
use crate::rng::Chance;

/// The profile of both directions.
#[derive(Args, Clone, Debug)]
pub(crate) struct LinkFlags {
    /// Round trip in milliseconds, half of it each way
    #[arg(long, value_name = "MS", default_value_t = 300)]
    pub rtt_ms: u32,
    /// Datagrams lost each way, in percent
    #[arg(long, value_name = "PERCENT", default_value = "10")]
    pub loss: Chance,
    /// Extra delay of each datagram, up to this, without reordering
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub jitter_ms: u32,
    /// Datagrams held back by up to a quarter of the round trip so that others overtake, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub reorder: Chance,
    /// Datagrams that arrive twice, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub duplicate: Chance,
    /// Datagrams that arrive damaged, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub corrupt: Chance,
    /// Bottleneck each way, in kilobits a second
    #[arg(long, value_name = "KBIT")]
    pub rate: Option<u32>,
    /// Queue before the bottleneck, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 64, requires = "rate")]
    pub queue: u32,
    /// Seed of all chances
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl LinkFlags {
    /// One direction of the link.
    pub(crate) fn profile(&self) -> Profile {
        let round_trip = Duration::from_millis(u64::from(self.rtt_ms));
        let mut profile = Profile::delay(round_trip / 2)
            .loss(self.loss)
            .reorder(self.reorder, (round_trip / 4).max(Duration::from_millis(1)));
        profile.duplicate = self.duplicate;
        profile.corrupt = self.corrupt;
        profile.order = Order::Kept;
        if self.jitter_ms > 0 {
            profile.jitter = Jitter::Uniform(Duration::from_millis(u64::from(self.jitter_ms)));
        }
        match self.rate {
            Some(kbit) => profile.rate(u64::from(kbit) * 1_000, self.queue as usize * 1_024),
            None => profile,
        }
    }

    /// The link in words, for a person.
    pub(crate) fn describe(&self) -> String {
        let mut words = format!("{} ms round trip, {} loss each way", self.rtt_ms, self.loss);
        for (chance, name) in
            [(self.reorder, "reordered"), (self.duplicate, "doubled"), (self.corrupt, "damaged")]
        {
            if chance > Chance::NEVER {
                words += &format!(", {chance} {name}");
            }
        }
        if self.jitter_ms > 0 {
            words += &format!(", jitter up to {} ms", self.jitter_ms);
        }
        if let Some(kbit) = self.rate {
            words += &format!(", {kbit} kbit/s");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        link: LinkFlags,
    }

    #[test]
    fn flags_become_a_profile_and_words() {
        for (flags, words) in [
            ("", "300 ms round trip, 10 % loss each way"),
            ("--rtt-ms 80 --loss 0.5", "80 ms round trip, 0.5 % loss each way"),
            (
                "--loss 0 --reorder 5 --rate 256 --jitter-ms 9",
                "300 ms round trip, 0 % loss each way, 5 % reordered, jitter up to 9 ms, 256 kbit/s",
            ),
        ] {
            let cli = Cli::try_parse_from(["lab"].into_iter().chain(flags.split_whitespace()));
            assert_eq!(cli.unwrap().link.describe(), words);
        }
        let cli = Cli::try_parse_from(["lab", "--rate", "8", "--queue", "2"]).unwrap();
        let rate = cli.link.profile().rate.unwrap();
        assert_eq!((rate.bits_per_second, rate.queue_bytes_max), (8_000, 2_048));
        assert!(Cli::try_parse_from(["lab", "--loss", "101"]).is_err());
    }
}
