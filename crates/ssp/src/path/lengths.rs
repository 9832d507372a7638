//! The lengths of datagrams that must not tell how much they carry (`docs/wire.md` §9). It must not know what that
//! is.

use crate::wire::Control;

/// Octets of such a datagram; what needs more takes what the path takes. 128 hold an answer of 64 octets of host bytes, or
/// as many keys beside the shortest head.
pub(crate) const STEPS: [usize; 3] = [128, 256, 512];

/// Which lengths a datagram may have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Lengths {
    /// As long as what it carries.
    #[default]
    Own,
    /// One of the [`STEPS`], or the longest that the path takes, and no less than this.
    Stepped { least: usize },
}

/// The shortest step that is not below `octets`; the path takes datagrams of `longest` octets.
pub(crate) fn step(octets: usize, longest: usize) -> usize {
    let steps = STEPS.into_iter().chain([longest]);
    steps.filter(|step| *step <= longest).find(|step| *step >= octets).unwrap_or(octets)
}

/// Octets of padding that make a datagram as long as a step of at least `least`, if it has `bare` octets with these items.
/// The peer may have asked for more than this way takes.
pub(crate) fn padding(control: &Control, bare: usize, least: usize, longest: usize) -> usize {
    // A list of items has a length, too, and padding has its kind.
    let head = if *control == Control::default() { LIST_LENGTH } else { 0 };
    let least = least.min(longest);
    match step(bare.max(least), longest) {
        exact if exact == bare => 0,
        _ => step((bare + head + 1).max(least), longest) - bare - head,
    }
}

/// Octets that a datagram has at most, if it has no more than `bare` without padding.
pub(crate) fn padded_max(bare: usize, lengths: Lengths, longest: usize) -> usize {
    match lengths {
        Lengths::Own => bare,
        Lengths::Stepped { least } => {
            step((bare + LIST_LENGTH + 1).max(least.min(longest)), longest)
        }
    }
}

/// Octets of the length of a list of items.
const LIST_LENGTH: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_what_is_needed() {
        for (octets, longest, want) in [
            (0, 1200, 128),
            (128, 1200, 128),
            (129, 1200, 256),
            (513, 1200, 1200),
            (1201, 1200, 1201),
            (300, 400, 400),
        ] {
            assert_eq!(step(octets, longest), want, "{octets} of {longest}");
        }
    }

    /// What an address may be sent before it is proven counts with its padding.
    #[test]
    fn no_padding_exceeds_what_was_reckoned() {
        for bare in 0..1_300 {
            for least in [0, 128, 256, 1_300] {
                let added = padding(&Control::default(), bare, least, 1_200);
                // The list of items has a length, unless there is none.
                let octets = bare + if added > 0 { LIST_LENGTH + added } else { 0 };
                for reckoned in [bare, bare + 40] {
                    let most = padded_max(reckoned, Lengths::Stepped { least }, 1_200);
                    assert!(octets <= most, "{bare}, {least}: {octets}, {most}");
                }
            }
        }
        assert_eq!(padded_max(300, Lengths::Own, 1_200), 300);
    }

    #[test]
    fn padding_counts_what_it_costs_itself() {
        let asks = Control { challenge: Some(1), ..Control::default() };
        for (control, bare, want) in [
            (Control::default(), 100, 26),
            (Control::default(), 125, 1),
            (Control::default(), 126, 128),
            (Control::default(), 128, 0),
            (asks, 100, 28),
            (asks, 127, 1),
            (asks, 128, 0),
            (asks, 129, 127),
        ] {
            assert_eq!(padding(&control, bare, 0, 1200), want, "{bare}");
        }
        assert_eq!(padding(&asks, 100, 512, 1200), 412);
        assert_eq!(padding(&asks, 100, 1400, 1200), 1100, "no more than the path takes");
    }
}
