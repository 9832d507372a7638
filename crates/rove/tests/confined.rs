//! What others, and code that has taken the client over, do not reach: Linux's own means.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod gate;
mod terminal;

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use gate::{not_checked, say};
use rove::testing::os::sandbox::Landlocked;
use rove::testing::os::{Named, Ports, Reach, confine, confine_all};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::removexattr;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use rustix::process::{Resource, getppid, getrlimit, prlimit};
use terminal::{Directory, ROVE, Terminal};

/// Marks the environment of the test below when it runs again, in a process of its own.
const HARDENED: &str = "THIS_TEST_IS_HARDENED";

/// Without its limit on core files, which a crash would meet first, a process that holds keys still leaves
/// no core, and nobody of the same user reads its memory.
#[test]
fn a_process_with_keys_leaves_no_core() {
    if std::env::var_os(HARDENED).is_some() {
        rove::testing::os::harden().unwrap();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Core);
        let all = rustix::process::Rlimit { current: limit.maximum, ..limit };
        rustix::process::setrlimit(rustix::process::Resource::Core, all).unwrap();
        let dumpable = rustix::process::dumpable_behavior().unwrap();
        assert_eq!(dumpable, rustix::process::DumpableBehavior::NotDumpable);
        std::process::abort();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_process_with_keys_leaves_no_core", "--nocapture"]).env(HARDENED, "1");
    let ended = again.output().unwrap().status;
    // Not by the assertion, which would end it with 101.
    assert_eq!(ended.signal(), Some(6));
    assert!(!ended.core_dumped());
}

/// The same for the test below: the reach of the process, and the directory to look for files in.
const CONFINED: &str = "THIS_TEST_IS_CONFINED";
const CONFINED_IN: &str = "THIS_TEST_IS_CONFINED_IN";

/// What code that has taken the client over would try (threats row 38), in threads from before and after.
#[test]
fn what_is_confined_reaches_nothing() {
    if let (Ok(reach), Ok(directory)) = (std::env::var(CONFINED), std::env::var(CONFINED_IN)) {
        return match reach.as_str() {
            "datagrams" => probe(Reach::Datagrams, &directory),
            "connections" => probe(Reach::Connections, &directory),
            _ => probe_threads(&directory),
        };
    }
    for reach in ["datagrams", "connections", "threads"] {
        let directory = Directory::new(reach);
        directory.script("program", "exit 0");
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "what_is_confined_reaches_nothing", "--nocapture"]);
        again.env(CONFINED, reach).env(CONFINED_IN, directory.path());
        let output = again.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let said = format!("{}{said}", String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{reach}: {said}");
        said.lines().filter(|line| line.starts_with("NOT CHECKED")).for_each(say);
    }
}

/// Confines this process, and tries what it should not be able to do.
fn probe(reach: Reach, directory: &str) {
    let script = format!("{directory}/program");
    let path = format!("{directory}/socket");
    let name = format!("rove-{}", std::process::id());
    let name = SocketAddr::from_abstract_name(name).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let unix = [UnixListener::bind(&path).unwrap(), UnixListener::bind_addr(&name).unwrap()];
    let mut open = File::open(&script).unwrap();
    let places = Places { script, tcp: tcp.local_addr().unwrap(), path, name, reach };
    let (go, wait) = std::sync::mpsc::channel();
    let older = places.clone();
    let older = std::thread::spawn(move || wait.recv().map(|()| older.try_all()).unwrap());
    let confined = confine_all(&places.reach);
    if confined.calls.is_err() {
        return not_checked("what_is_confined_reaches_nothing", &confined.to_string());
    }
    places.try_all();
    go.send(()).unwrap();
    older.join().unwrap();
    std::thread::spawn(move || places.try_all()).join().unwrap();
    // What a session lives on.
    assert!(open.read(&mut [0]).unwrap() > 0);
    for here in ["127.0.0.1:0", "0.0.0.0:0"] {
        let socket = UdpSocket::bind(here).unwrap();
        socket.connect("127.0.0.1:9").unwrap();
    }
    drop((tcp, unix));
}

/// The same for a session that forwards: its own thread is as one that forwards nothing, and the threads that serve
/// forwardings reach what these name.
fn probe_threads(directory: &str) {
    let [script, path, near] =
        ["program", "socket", "below/near"].map(|name| format!("{directory}/{name}"));
    fs::create_dir(format!("{directory}/below")).unwrap();
    let name = SocketAddr::from_abstract_name(format!("rove-{}", std::process::id())).unwrap();
    let tcp = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let [named_port, other_port] = tcp.each_ref().map(|tcp| tcp.local_addr().unwrap());
    let unix = [UnixListener::bind(&path).unwrap(), UnixListener::bind_addr(&name).unwrap()];
    let listener = UnixListener::bind(&near).unwrap();
    let places = Places { script, tcp: other_port, path, name, reach: Reach::Datagrams };
    let confined = confine_all(&Reach::Connections);
    if confined.calls.is_err() {
        return not_checked("what_is_confined_reaches_nothing", &confined.to_string());
    }
    // What listens here and goes on from the host: its sockets are open.
    let local = Named { places: vec![near.clone().into()], ..Named::default() };
    let (own, place) = (places.clone(), near.clone());
    let serve = move || {
        let locked = confine(&Reach::Named(local)).files.unwrap();
        fs::remove_file(&place).unwrap();
        if locked >= Landlocked::Files {
            denied(fs::remove_file(&own.script));
        }
        denied(UdpSocket::bind("127.0.0.1:0").map(drop));
        own.try_files();
        own.try_sockets();
        let (mut one, _) = listener.accept().unwrap();
        one.write_all(b"served").unwrap();
    };
    let mut connected = UnixStream::connect(near).unwrap();
    std::thread::spawn(serve).join().unwrap();
    let mut octets = [0; 6];
    connected.read_exact(&mut octets).unwrap();
    assert_eq!(&octets, b"served");
    // What listens at the host and goes on from here: a name is looked up, and a port connected to.
    let ports = Ports::These([named_port.port()].into());
    let remote = Named { ports, names: true, ..Named::default() };
    let own = places.clone();
    let serve = move || {
        let locked = confine(&Reach::Named(remote)).files.unwrap();
        let found: Vec<_> = ("localhost", named_port.port()).to_socket_addrs().unwrap().collect();
        assert!(found.contains(&named_port), "{found:?}");
        TcpStream::connect(named_port).unwrap();
        File::open("/etc/hosts").unwrap();
        denied(File::options().write(true).open("/etc/hosts").map(drop));
        denied(fs::remove_file(&own.script));
        denied(Command::new("/bin/sh").args(["-c", ":"]).status().map(drop));
        if locked >= Landlocked::Files {
            denied(File::open(&own.script).map(drop));
            denied(fs::read_dir("/proc/self").map(drop));
        }
        if locked >= Landlocked::FilesAndTcp {
            denied(TcpStream::connect(own.tcp).map(drop));
            denied(TcpListener::bind("127.0.0.1:0").map(drop));
        }
        if locked >= Landlocked::FilesAndSockets {
            denied(UnixStream::connect_addr(&own.name).map(drop));
        }
    };
    std::thread::spawn(serve).join().unwrap();
    // Unix sockets, of the agent or others.
    let (own, agent) = (places.clone(), Named { unix: true, ..Named::default() });
    let serve = move || {
        let _ = confine(&Reach::Named(agent));
        UnixStream::connect(&own.path).unwrap();
        denied(TcpStream::connect(own.tcp).map(drop));
        own.try_files();
    };
    std::thread::spawn(serve).join().unwrap();
    // And the session's own.
    let _ = confine(&Reach::Datagrams);
    places.try_all();
    std::thread::spawn(move || places.try_all()).join().unwrap();
    UdpSocket::bind("127.0.0.1:0").unwrap();
    drop((tcp, unix));
}

fn denied(result: io::Result<()>) {
    assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
}

/// What there is to be reached.
#[derive(Clone)]
struct Places {
    script: String,
    tcp: std::net::SocketAddr,
    path: String,
    name: SocketAddr,
    reach: Reach,
}

impl Places {
    fn try_all(&self) {
        denied(Command::new(&self.script).status().map(drop));
        denied(Command::new("/bin/sh").args(["-c", ":"]).status().map(drop));
        let (limits, parent) = (getrlimit(Resource::Core), getppid());
        denied(prlimit(parent, Resource::Core, limits).map(drop).map_err(io::Error::from));
        if self.reach == Reach::Connections {
            File::open(&self.script).unwrap();
            TcpStream::connect(self.tcp).unwrap();
            UnixStream::connect(&self.path).unwrap();
            return;
        }
        self.try_files();
        denied(fs::remove_file(&self.script));
        self.try_sockets();
    }

    /// Files by their names.
    fn try_files(&self) {
        denied(File::open("/etc/passwd").map(drop));
        denied(File::open(&self.script).map(drop));
        denied(File::create(format!("{}.fresh", self.script)).map(drop));
        denied(fs::rename(&self.script, "/tmp/other"));
        denied(fs::set_permissions(&self.script, Permissions::from_mode(0o777)));
        denied(fs::read_dir("/").map(drop));
        denied(removexattr(&self.script, "user.x").map_err(io::Error::from));
        denied(fs::hard_link(&self.script, format!("{}.linked", self.script)));
    }

    /// All sockets but UDP's.
    fn try_sockets(&self) {
        denied(TcpStream::connect(self.tcp).map(drop));
        denied(TcpListener::bind("127.0.0.1:0").map(drop));
        denied(UnixStream::connect(&self.path).map(drop));
        denied(UnixStream::connect_addr(&self.name).map(drop));
        denied(UnixDatagram::unbound().map(drop));
        let other = socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::UDPLITE));
        denied(other.map(drop).map_err(io::Error::from));
        denied(UnixStream::pair().map(drop));
    }
}

/// A session is confined for as long as it lasts, in each of its threads, and goes on with all it has: it forwards,
/// is suspended, its window changes, and it ends in good order.
#[test]
fn a_session_gives_up_what_it_does_without() {
    let directory = Directory::new("forwarded");
    let [near, far] = ["near", "far"].map(|name| format!("{}/{name}", directory.path()));
    let far_end = UnixListener::bind(&far).unwrap();
    let forwarding = format!("{near}:{far}");
    for (forward, threads) in [
        (&[][..], &[("rove", 1)][..]),
        (&["-L", &forwarding], &[("forwardings", 2), ("rove", 2), ("streams", 2)]),
    ] {
        let server = format!("--server={ROVE}");
        let script = "echo begun; read line; stty size; read line";
        let words = [forward, &["--local", &server, "127.0.0.1", script]].concat();
        let mut terminal = Terminal::run(ROVE, &words, &[]);
        terminal.expect("begun");
        assert_confined(terminal.pid(), threads);
        if !forward.is_empty() {
            UnixStream::connect(&near).unwrap().write_all(b"through").unwrap();
            let limit = Timespec { tv_sec: 45, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&far_end, PollFlags::IN)], Some(&limit));
            assert_eq!(ready, Ok(1), "nothing is forwarded");
            let mut octets = [0; 7];
            far_end.accept().unwrap().0.read_exact(&mut octets).unwrap();
            assert_eq!(&octets, b"through");
            assert_confined(terminal.pid(), threads);
        }
        terminal.resize(100, 30);
        terminal.type_keys("\x1e\x1a");
        terminal.expect("\x1b[?1l");
        terminal.expect("\x1b[?1h");
        terminal.type_keys("\r");
        terminal.expect("30 100");
        terminal.type_keys("\r");
        assert_eq!(terminal.finish(), 0, "{}", terminal.text());
        terminal.assert_given_back();
        assert!(!fs::exists(&near).unwrap(), "the socket that listened is removed");
    }
}

/// The client of a session without a screen is confined in each thread, also where a name was looked up before: in one
/// that reads standard input as well.
#[test]
fn a_command_gives_up_what_it_does_without() {
    let far = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = far.local_addr().unwrap().to_string();
    for words in [&["localhost", "cat"][..], &["-W", &to, "localhost"]] {
        let mut client = Command::new(ROVE);
        client.args(["exec", "--local", &format!("--server={ROVE}")]).args(words);
        let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
        input.write_all(b"through").unwrap();
        if words[0] == "-W" {
            let mut served = far.accept().unwrap().0;
            std::thread::spawn(move || io::copy(&mut served.try_clone().unwrap(), &mut served));
        }
        let mut octets = [0; 7];
        output.read_exact(&mut octets).unwrap();
        assert_eq!(&octets, b"through", "{words:?}");
        // Standard input is being read, by a thread that is neither of these.
        if let Some(seen) = confined(client.id()) {
            let is_named = |name: &str| seen.iter().any(|(thread, _)| thread == name);
            assert!(is_named("rove") && is_named("session") && seen.len() > 2, "{seen:?}");
            assert!(seen.iter().all(|(_, filters)| *filters == 2), "{words:?}: {seen:?}");
        }
        drop(input);
        assert!(client.wait().unwrap().success(), "{words:?}");
    }
}

/// Fails unless this process has these threads, each with this number of filters: with forwardings one for
/// all, and one of its own.
fn assert_confined(pid: u32, threads: &[(&str, u64)]) {
    if let Some(seen) = confined(pid) {
        let seen: Vec<_> = seen.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(seen, threads);
    }
}

/// The threads of this process, and how many filters each has besides those that this test has itself
/// (proc_pid_status(5)). Fails if one is not confined. `None` where the kernel takes no filters.
fn confined(pid: u32) -> Option<Vec<(String, u64)>> {
    // Kernels that take filters have it.
    if !fs::exists("/proc/sys/kernel/seccomp/actions_avail").unwrap() {
        not_checked("the_filters_of_a_sessions_threads", "this kernel takes no filters of calls");
        return None;
    }
    let value = |status: &str, name| {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.map(|value| value.trim().to_owned())
    };
    // Told since Linux 5.9.
    let filters = |status: &str| value(status, "Seccomp_filters:").unwrap().parse::<u64>().unwrap();
    let ours = filters(&fs::read_to_string("/proc/self/status").unwrap());
    let mut seen = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let task = task.unwrap().path();
        let status = fs::read_to_string(task.join("status")).unwrap();
        assert_eq!(value(&status, "Seccomp:").as_deref(), Some("2"));
        assert_eq!(value(&status, "NoNewPrivs:").as_deref(), Some("1"));
        seen.push((value(&status, "Name:").unwrap(), filters(&status) - ours));
    }
    seen.sort();
    Some(seen)
}
