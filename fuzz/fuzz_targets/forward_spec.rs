//! Forwardings as users and ssh's configuration write them: what is read is written in a form that reads
//! as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::services::spec::{Endpoint, Spec};

fuzz_target!(|text: &str| {
    for read in [Spec::local, Spec::remote, Spec::dynamic] {
        if let Ok(spec) = read(text) {
            assert_eq!(read(&spec.to_string()), Ok(spec));
        }
    }
    if let Ok(endpoint) = text.parse::<Endpoint>() {
        assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
    }
});
