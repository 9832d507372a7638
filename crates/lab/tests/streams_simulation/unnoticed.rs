//! A client that has moved without its system's notice, and has no channel open: the server's next channel reaches it.

use std::sync::Arc;

use rove_lab::testing::rng::Rng;
use rove_streams::clock;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::network::{Net, SECOND};
use crate::paths::Course;
use crate::session;
use crate::virtual_time;

#[test]
fn a_servers_channel_reaches_a_client_that_moved_unnoticed() {
    virtual_time(async {
        let mut rng = Rng::new(1);
        let net = Net::new(Course::fair(), &mut rng);
        let (networks, _) = watch::channel(0);
        let [client, server] = session::start(&net, &mut rng, &networks);
        let mut world = JoinSet::new();
        world.spawn(Arc::clone(&net).run());
        for _ in 0..3 {
            let near = server.streams.open(b"agent").await.unwrap();
            let (request, far) = client.streams.accept().await.unwrap();
            assert_eq!(request, b"agent");
            drop((near, far));
            // Nothing is asked at first, and seldom later.
            clock::sleep(60 * SECOND).await;
            net.roam();
            let _channel = server.streams.open(b"agent").await.unwrap();
            let reached = clock::within(20 * SECOND, client.streams.accept()).await;
            assert!(reached.is_ok(), "the channel is not there after 20 s");
        }
    });
}
