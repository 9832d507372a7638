use super::*;
use crate::doctor::check::Rating;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn addresses_by_family() {
    for (addresses, named, expected) in [
        (&["192.0.2.1:1"][..], 1, &["192.0.2.1:1 | 1"][..]),
        (&["[::1]:1", "127.0.0.1:1"], 1, &["[::1]:1 | 1", "127.0.0.1:1 | 0"]),
        (
            &["192.0.2.1:1", "[::1]:1", "10.0.0.1:1", "[::2]:1"],
            2,
            &["192.0.2.1:1 10.0.0.1:1 | 1", "[::1]:1 [::2]:1 | 1"],
        ),
    ] {
        let all = Candidates { addresses: addresses.iter().map(|it| address(it)).collect(), named };
        let shown: Vec<String> = families(&all)
            .iter()
            .map(|family| {
                let words: Vec<_> = family.addresses.iter().map(SocketAddr::to_string).collect();
                format!("{} | {}", words.join(" "), family.named)
            })
            .collect();
        assert_eq!(shown, expected);
    }
}

fn good() -> Probed {
    Probed {
        answered: Some(Duration::from_millis(21)),
        sent: 1,
        is_reported: true,
        probes: 50,
        round_trips: [5, 20, 30].map(Duration::from_millis).to_vec(),
        datagram_bytes: Some(1452),
        ..Probed::new(address("192.0.2.1:60001"))
    }
}

#[test]
fn what_the_network_does() {
    let said = |path: &Probed| {
        let checks = checks(path, (true, true), false, None, USUAL_PORTS);
        checks.iter().map(Check::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        said(&good()),
        [
            "ok UDP 60001 to 192.0.2.1: answered after 21 ms",
            "ok round trip by IPv4: 20 ms (5..30); of 50 probes 0 % lost there, 0 % back",
            "ok datagrams by IPv4: up to 1452 octets",
        ]
    );
    let stock = Probed { is_reported: false, ..good() };
    let lines = ["ok UDP 60001 to 192.0.2.1: answered after 21 ms"];
    assert_eq!(said(&stock)[..1], lines);
    assert_eq!(said(&stock)[1..], ["ok round trip by IPv4: 20 ms (5..30)"]);
    let bad = Probed { lost_there: 0.3, datagram_bytes: Some(976), ..good() };
    let verdicts =
        checks(&bad, (true, true), false, None, USUAL_PORTS).iter().map(|it| it.verdict).collect();
    let verdicts: Vec<Rating> = verdicts;
    assert_eq!(verdicts, [Rating::Ok, Rating::Poor, Rating::Poor]);
}

#[test]
fn a_network_that_takes_nothing() {
    let silent = Probed { sent: 20, ..Probed::new(address("[2001:db8::1]:60007")) };
    let without = Probed { failed: Some("No network here".into()), ..silent.clone() };
    for (path, others, listens, parts) in [
        (
            &silent,
            (false, true),
            Some(true),
            &["NO ", "sent 20, nothing came back; the server listens"][..],
        ),
        (&silent, (false, true), Some(false), &["NO ", "does not listen there any more"]),
        (
            &silent,
            (false, true),
            None,
            &["NO ", "came back. A firewall between: allow UDP 60001:60999"],
        ),
        (&silent, (true, true), None, &["-- ", "the other family", "--udp-port"]),
        (&without, (true, true), None, &["-- ", "no network here. Sessions use the other family"]),
        (&without, (false, true), None, &["-- ", "no network here", "see the other"]),
        (&without, (false, false), None, &["NO ", "no network here", "this machine's network"]),
    ] {
        let said = checks(path, others, false, listens, USUAL_PORTS);
        let line = said[0].to_string();
        assert_eq!(said.len(), 1);
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?}: {line}");
        assert!(line.contains("UDP 60007 to 2001:db8::1"), "{line}");
    }
}
