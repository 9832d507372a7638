//! Confines the client of a session for as long as the session lasts (threats row 38): an attacker who took
//! it over through a fault of ours reaches neither files nor programs nor other processes, and no socket but
//! UDP's.
//!
//! Landlock keeps files and TCP from a thread and those that it starts. A filter of system calls
//! (seccomp(2)) covers the rest: sockets by path and abstract ones, other processes, and keys pushed into
//! the user's terminal. It lists the refused calls, which fail with EPERM. A list of allowed calls would end
//! sessions whenever a newer C library makes a new call; the calls that lead out of a process are few and
//! known.
//!
//! A session that forwards has three kinds of threads. The session's own and the one that carries the
//! streams keep UDP. A third serves the forwardings, and keeps what these name ([`Named`]). A filter for all
//! threads needs them to have the same; hence it comes first ([`confine_all`]), and each then adds its own
//! ([`confine`]).

mod landlock;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};

pub use crate::os::reach::{Named, Ports, Reach};
pub use landlock::Landlocked;
use landlock::{Left, landlock};

/// The result of confining. A kernel that cannot do it does not prevent the session.
#[derive(Debug)]
pub struct Confined {
    /// The access that Landlock has removed from this thread.
    pub files: io::Result<Landlocked>,
    /// Whether the filter refuses calls.
    pub calls: Result<(), seccompiler::Error>,
}

impl Confined {
    /// Whether this kernel does all of it.
    pub(crate) fn is_whole(&self) -> bool {
        self.files.is_ok() && self.calls.is_ok()
    }
}

impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.files {
            Ok(files) => write!(f, "Landlock: {files:?}; ")?,
            Err(error) => write!(f, "Landlock: {error}; ")?,
        }
        match &self.calls {
            Ok(()) => f.write_str("seccomp: calls are refused"),
            Err(error) => write!(f, "seccomp: {error}"),
        }
    }
}

/// Confines this process for good: files for this thread and those it starts, calls for all threads, none of
/// which may have been confined by itself before.
pub fn confine_all(reach: &Reach) -> Confined {
    Confined {
        files: keep_files(reach),
        calls: refuse(reach, seccompiler::apply_filter_all_threads),
    }
}

/// Confines this thread and those it starts for good; earlier refusals stay.
pub fn confine(reach: &Reach) -> Confined {
    Confined { files: keep_files(reach), calls: refuse(reach, seccompiler::apply_filter) }
}

/// Makes the kernel refuse the calls outside this reach. It ends a process that makes a call of another
/// architecture (a 32-bit one).
fn refuse(
    reach: &Reach,
    apply: impl FnOnce(&[sock_filter]) -> Result<(), seccompiler::Error>,
) -> Result<(), seccompiler::Error> {
    apply(&filter(reach)?)
}

/// Makes Landlock remove as much as it can of the access outside this reach.
fn keep_files(reach: &Reach) -> io::Result<Landlocked> {
    match reach {
        Reach::Connections => Ok(Landlocked::Nothing),
        Reach::Datagrams => landlock(&Left::default()),
        Reach::Named(named) => landlock(&named.left()),
    }
}

impl Named {
    /// The files and TCP ports for Landlock to leave.
    fn left(&self) -> Left {
        let mut read: Vec<PathBuf> = Vec::new();
        if self.names {
            read.extend(LOOK_UP.iter().map(PathBuf::from));
            // What names the servers to ask often stands elsewhere, and is written anew there.
            let servers = Path::new("/etc/resolv.conf").canonicalize();
            read.extend(servers.ok().and_then(|path| path.parent().map(Path::to_owned)));
        }
        let directory = |place: &PathBuf| match place.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let connect = match &self.ports {
            Ports::All => None,
            Ports::These(ports) => {
                Some(ports.iter().copied().chain(self.names.then_some(DOMAIN)).collect())
            }
        };
        Left { read, remove: self.places.iter().map(directory).collect(), connect }
    }
}

/// Files that the C library needs to look up a name: its modules, their settings, hosts(5).
const LOOK_UP: [&str; 7] =
    ["/etc", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/var/lib/sss"];

/// The port of name servers, which are asked by TCP if an answer is long (RFC 7766).
const DOMAIN: u16 = 53;

/// Calls that run programs or reach into other processes.
const PROGRAMS: [c_long; 8] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_shmget,
    libc::SYS_shmat,
];

/// Calls that make the kernel work unseen by filters, and that no session needs.
const KERNEL: [c_long; 10] = [
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
];

#[cfg(not(target_os = "android"))]
const TRUNCATE: c_long = libc::SYS_truncate;

/// The libc crate does not name this call for Android on every processor. The numbers are those of Linux.
#[cfg(target_os = "android")]
const TRUNCATE: c_long = if cfg!(target_arch = "x86_64") {
    76
} else if cfg!(target_pointer_width = "32") {
    92
} else {
    45
};

/// Files by name, as Landlock refuses them to one thread, and modes, owners and dates.
const FILES: [c_long; 22] = [
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    TRUNCATE,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_mq_open,
    libc::SYS_chroot,
    FCHMODAT2,
];

/// renameat(2), which riscv64 never had.
#[cfg(not(target_arch = "riscv64"))]
const RENAMING: [c_long; 1] = [libc::SYS_renameat];
#[cfg(target_arch = "riscv64")]
const RENAMING: [c_long; 0] = [];

/// fchmodat2(2), whose number is the same everywhere and which libc does not name everywhere.
const FCHMODAT2: c_long = 452;

/// The same by their older calls, which newer architectures never had.
#[cfg(target_arch = "x86_64")]
const OLDER: [c_long; 15] = [
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [c_long; 0] = [];

/// TIOCSTI and TIOCLINUX push keys into a terminal, for the shell to read when the session is over
/// (ioctl_tty(2); asm-generic/ioctls.h).
const PUSHING: [u64; 2] = [0x5412, 0x541c];

/// Numbers from here on are the x32 calls of an x86_64 kernel: others for the same things.
const X32: u32 = 0x4000_0000;

/// The program that the kernel runs for each call.
fn filter(reach: &Reach) -> Result<BpfProgram, BackendError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    // Without a rule a call is refused whatever its arguments.
    let mut whole =
        |calls: &[c_long]| refused.extend(calls.iter().map(|call| (wide(*call), vec![])));
    whole(&PROGRAMS);
    whole(&KERNEL);
    if *reach != Reach::Connections {
        whole(&FILES);
        whole(&OLDER);
        whole(&RENAMING);
        // One of a pair that the kernel connects for us can be turned to a path.
        whole(&[libc::SYS_socketpair]);
    }
    match reach {
        Reach::Connections => {}
        Reach::Datagrams => {
            refused.insert(wide(libc::SYS_socket), all_but(&udp())?);
        }
        Reach::Named(named) => {
            refused.insert(wide(libc::SYS_socket), all_but(&named.sockets())?);
            if named.names {
                for (call, flags) in READING {
                    refused.insert(wide(call), all_but_reading(flags)?);
                }
            }
            if !named.places.is_empty() {
                REMOVING.iter().for_each(|call| drop(refused.remove(&wide(*call))));
            }
        }
    }
    // The limits of another process; our own are number 0.
    refused.insert(wide(libc::SYS_prlimit64), vec![rule(each_of(0, SeccompCmpOp::Ne, &[0])?)?]);
    let pushing = PUSHING.map(|request| rule(each_of(1, SeccompCmpOp::Eq, &[request])?));
    refused.insert(wide(libc::SYS_ioctl), pushing.into_iter().collect::<Result<_, _>>()?);
    let permission = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, permission.clone(), arch)?;
    let named: BpfProgram = filter.try_into()?;
    // Load the number; unless it is below X32, refuse.
    let beginning = [
        sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
        sock_filter { code: 0x35, jt: 0, jf: 1, k: X32 },
        sock_filter { code: 0x06, jt: 0, jf: 0, k: permission.into() },
    ];
    Ok([&beginning[..], &named].concat())
}

/// The number of a call, whose type has 32 bits on some processors.
#[allow(clippy::useless_conversion, reason = "64 bits on others")]
fn wide(call: c_long) -> i64 {
    call.into()
}

/// The calls that open a file, and their argument with the purpose.
#[cfg(target_arch = "x86_64")]
const READING: [(c_long, u8); 2] = [(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const READING: [(c_long, u8); 1] = [(libc::SYS_openat, 2)];

/// The calls that remove a file.
#[cfg(target_arch = "x86_64")]
const REMOVING: [c_long; 2] = [libc::SYS_unlinkat, libc::SYS_unlink];
#[cfg(not(target_arch = "x86_64"))]
const REMOVING: [c_long; 1] = [libc::SYS_unlinkat];

/// Opening a file for more than reading; `index` is the argument that shows it.
fn all_but_reading(index: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let ways = [
        (libc::O_ACCMODE, libc::O_WRONLY),
        (libc::O_ACCMODE, libc::O_RDWR),
        (libc::O_ACCMODE, libc::O_ACCMODE),
        (libc::O_CREAT, libc::O_CREAT),
        (libc::O_TRUNC, libc::O_TRUNC),
    ];
    let ways = ways.map(|(mask, value)| {
        let among = SeccompCmpOp::MaskedEq(mask.unsigned_abs().into());
        rule(each_of(index, among, &numbers(&[value]))?)
    });
    ways.into_iter().collect()
}

/// Sockets of one family.
struct Sockets {
    family: i32,
    types: Vec<i32>,
    protocols: Vec<i32>,
}

/// UDP's.
fn udp() -> Vec<Sockets> {
    ip(vec![libc::SOCK_DGRAM], vec![0, libc::IPPROTO_UDP])
}

/// These of both families of IP.
fn ip(types: Vec<i32>, protocols: Vec<i32>) -> Vec<Sockets> {
    let of = |family| Sockets { family, types: types.clone(), protocols: protocols.clone() };
    vec![of(libc::AF_INET), of(libc::AF_INET6)]
}

impl Named {
    /// Whether any TCP port is connected to.
    fn connects(&self) -> bool {
        !matches!(&self.ports, Ports::These(ports) if ports.is_empty())
    }

    /// The sockets to allow: to connect, and for the C library's look-ups: to servers by UDP and TCP, to
    /// this machine's name services, and to the kernel for its addresses.
    fn sockets(&self) -> Vec<Sockets> {
        let (datagrams, streams) = (libc::SOCK_DGRAM, libc::SOCK_STREAM);
        let mut made = if self.names {
            ip(vec![datagrams, streams], vec![0, libc::IPPROTO_UDP, libc::IPPROTO_TCP])
        } else if self.connects() {
            ip(vec![streams], vec![0, libc::IPPROTO_TCP])
        } else {
            Vec::new()
        };
        if self.names || self.unix {
            made.push(Sockets { family: libc::AF_UNIX, types: vec![streams], protocols: vec![0] });
        }
        if self.names {
            let (family, types) = (libc::AF_NETLINK, vec![libc::SOCK_RAW]);
            made.push(Sockets { family, types, protocols: vec![libc::NETLINK_ROUTE] });
        }
        made
    }
}

/// Sockets of other families than these, and of theirs those of another type or protocol.
fn all_but(sockets: &[Sockets]) -> Result<Vec<SeccompRule>, BackendError> {
    let families: Vec<i32> = sockets.iter().map(|sockets| sockets.family).collect();
    if families.is_empty() {
        return Ok(Vec::new());
    }
    let mut rules = vec![rule(each_of(0, SeccompCmpOp::Ne, &numbers(&families))?)?];
    for Sockets { family, types, protocols } in sockets {
        let flags = [0, libc::SOCK_CLOEXEC, libc::SOCK_NONBLOCK];
        let flags = flags.iter().chain(&[libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK]);
        let types: Vec<i32> =
            flags.flat_map(|flags| types.iter().map(move |kind| kind | flags)).collect();
        for (index, allowed) in [(1, &types), (2, protocols)] {
            let mut conditions = each_of(0, SeccompCmpOp::Eq, &numbers(&[*family]))?;
            conditions.extend(each_of(index, SeccompCmpOp::Ne, &numbers(allowed))?);
            rules.push(rule(conditions)?);
        }
    }
    Ok(rules)
}

fn numbers(words: &[i32]) -> Vec<u64> {
    words.iter().map(|word| (*word).unsigned_abs().into()).collect()
}

/// A rule that requires all of these conditions.
fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// Conditions that an argument, of which 32 bits count, has this relation to each of these values.
fn each_of(
    index: u8,
    relation: SeccompCmpOp,
    values: &[u64],
) -> Result<Vec<SeccompCondition>, BackendError> {
    let condition = |value: &u64| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, relation.clone(), *value)
    };
    values.iter().map(condition).collect()
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::process::{Command, Stdio};
    use std::ptr;

    use super::*;
    use crate::os::unix::environment::environment;

    /// Marks the environment of this test when it runs again, in a process of its own.
    const CONFINED: &str = "THIS_TEST_IS_CONFINED";

    /// Whether a call failed for lack of a right.
    fn is_refused(result: libc::c_long) -> bool {
        result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }

    #[test]
    fn calls_that_lead_out_of_a_process_are_refused() {
        let name = concat!(module_path!(), "::calls_that_lead_out_of_a_process_are_refused");
        // The harness leaves out the crate.
        let name = name.strip_prefix("rove::").unwrap();
        let Some((_, reach)) = environment().find(|(name, _)| name == CONFINED) else {
            for reach in ["datagrams", "named", "connections"] {
                let mut again = Command::new(std::env::current_exe().unwrap());
                again.args(["--exact", name, "--nocapture"]).env(CONFINED, reach);
                again.stderr(Stdio::inherit());
                let output = again.output().unwrap();
                let passed = String::from_utf8_lossy(&output.stdout).contains(" 1 passed");
                assert!(output.status.success() && passed, "{reach}: {output:?}");
            }
            return;
        };
        let reach = match reach.to_str() {
            Some("datagrams") => Reach::Datagrams,
            Some("named") => Reach::Named(Named::default()),
            _ => Reach::Connections,
        };
        if let Err(error) = confine_all(&reach).calls {
            eprintln!(
                "NOT CHECKED: calls_that_lead_out_of_a_process_are_refused: this kernel refuses no calls: {error}"
            );
            return;
        }
        let (none, nowhere) = (0_usize, ptr::null_mut::<libc::c_void>());
        let mut octet = 0_u8;
        let part = libc::iovec { iov_base: (&raw mut octet).cast(), iov_len: 1 };
        // SAFETY: what is allowed would read and write the one octet of `part`, or fail for want of arguments.
        unsafe {
            let own = libc::c_long::from(libc::getpid());
            let (vm_read, one) = (libc::SYS_process_vm_readv, 1_usize);
            assert!(is_refused(libc::ptrace(libc::PTRACE_TRACEME, 0, nowhere, nowhere)));
            assert!(is_refused(libc::syscall(vm_read, own, &part, one, &part, one, none)));
            assert!(is_refused(libc::syscall(libc::SYS_io_uring_setup, none, nowhere)));
            assert!(is_refused(libc::syscall(libc::SYS_execveat, none, nowhere, none, none, none)));
            // TIOCSTI: of no file at all it would be said that there is none. TIOCGWINSZ is no such thing.
            assert!(is_refused(libc::syscall(libc::SYS_ioctl, -1_isize, 0x5412_usize, nowhere)));
            assert!(!is_refused(libc::syscall(libc::SYS_ioctl, -1_isize, 0x5413_usize, nowhere)));
            // The same by x32's numbers, where the kernel has them or not.
            #[cfg(target_arch = "x86_64")]
            assert!(is_refused(libc::syscall(0x4000_0000 | libc::SYS_getpid)));
            let raw = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0);
            assert_eq!(is_refused(raw.into()), reach != Reach::Connections);
            // Only the lower half of an argument counts.
            let family = (1_u64 << 32) | libc::AF_UNIX.unsigned_abs() as u64;
            let made = libc::syscall(libc::SYS_socket, family, libc::SOCK_STREAM, none);
            assert_eq!(is_refused(made), reach != Reach::Connections);
        }
    }
}
