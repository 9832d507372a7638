//! Keys typed at a terminal while channels are forwarded, over hostile networks: at the end the program has read each key
//! once and in order, both ends hold one screen, and every octet of the channels has come through.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rove_lab::testing::rng::Rng;
use rove_session::client::Obscure;
use rove_ssp::Time;
use rove_streams::clock;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::counts::Counts;
use crate::forwarding;
use crate::network::{Net, SECOND};
use crate::paths::{Course, HOSTILE};
use crate::terminal::{self, Seen, Typing};

/// The ends meet over a fair path: a client that never hears its server gives up.
const FAIR: Duration = Duration::from_secs(3);

/// Keys typed while the path is hostile.
const KEYS: usize = 150;

/// How long the channels, and then the keys, may take over the fair path at the end.
const ENDS_WITHIN: Duration = Duration::from_secs(300);
const AGREE_WITHIN: Duration = Duration::from_secs(30);

/// Runs the session of this seed.
pub async fn run(mut rng: Rng, counts: &mut Counts) {
    let course = Course::hostile(&mut rng);
    let hostile = course.profile.clone();
    let net = Net::new(Course::fair(), &mut rng);
    let (networks, networks_of_client) = watch::channel(0);
    let mut keys: Vec<Time> = (0..KEYS).map(|_| Time::ZERO + rng.span_below(HOSTILE)).collect();
    keys.sort_unstable();
    let typing = Typing { obscure: Obscure::Never, keys, networks: networks_of_client };
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let mut session = JoinSet::new();
    let streams = terminal::start(&net, &mut rng, typing, &seen, &mut session);
    let mut world = JoinSet::new();
    world.spawn(Arc::clone(&net).run());
    net.until(Time::ZERO + FAIR).await;
    net.set_profile(hostile);
    world.spawn(course.run(Arc::clone(&net), networks));

    let limit = Time::ZERO + HOSTILE + ENDS_WITHIN;
    tokio::select! {
        biased;
        () = forwarding::converse_all(&mut rng, streams.clone(), counts) => {}
        () = net.until(limit) => panic!(
            "channels take too long; kept for the peers: {:?}",
            streams.each_ref().map(|streams| streams.on_the_way())
        ),
        ended = session.join_next() => panic!("an end of the session is over: {ended:?}"),
    }
    net.until(Time::ZERO + HOSTILE).await;
    let limit = net.now() + AGREE_WITHIN;
    let difference = || seen.lock().unwrap().difference();
    while let Some(difference) = difference() {
        assert!(net.now() < limit, "{difference}");
        clock::sleep(SECOND).await;
    }
    counts.keys += KEYS as u64;
    counts.reconnects += streams[0].connections().saturating_sub(1);
    counts.add_network(net.now(), net.passed());
    session.shutdown().await;
}

impl Seen {
    /// What the two ends do not agree on.
    fn difference(&self) -> Option<String> {
        let (typed, read) = (self.typed.len(), self.read.len());
        if typed != KEYS || self.typed != self.read {
            return Some(format!("{typed} keys typed, {read} read, or in another order"));
        }
        let [here, there] = self.screens.each_ref().map(|screen| {
            let screen = screen.as_ref().expect("both ends have begun");
            (screen.text(), screen.cursor())
        });
        (here != there).then(|| format!("the client has {here:?}, the program {there:?}"))
    }
}
