//! URIs that a host names, on a machine of any name and with any hosts file: whatever passes names a file of
//! another machine, and its host is spelt in the one way that cannot be misread (threats row 6).
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_term::LocalNames;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, '\0');
    let [name, uri, hosts] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let local = LocalNames::new(name, hosts);
    for own in [format!("file://{name}/"), format!("file://{name}.example/a")] {
        assert!(name.contains('/') || !local.allow(&own), "{own:?}");
    }
    if !local.allow(uri) {
        return;
    }
    let (host, path) = uri["file://".len()..].split_once('/').expect("a host and a path");
    assert!(uri[.."file://".len()].eq_ignore_ascii_case("file://"), "{uri:?}");
    assert!(host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)));
    assert!(host.parse::<std::net::IpAddr>().is_err());
    assert!(!host.to_ascii_lowercase().contains("localhost"));
    let label = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    assert_ne!(label(host), label(name));
    // How it is spelt changes nothing.
    let bare = host.strip_suffix('.').unwrap_or(host);
    for same in [host.to_ascii_uppercase(), bare.to_owned(), format!("{bare}.")] {
        assert!(local.allow(&format!("FILE://{same}/{path}")), "{same:?}");
    }
});
