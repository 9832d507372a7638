//! What the client of a session gives up for as long as the session lasts (threats row 38): whoever took it over
//! through a fault of ours finds neither files nor programs nor other processes, and no socket but UDP's.
//!
//! Landlock keeps files and TCP from the thread that runs the session. A filter of system calls (seccomp(2)) binds
//! all threads, those that look up names among them, and reaches what Landlock does not: sockets by path and
//! abstract ones, other processes, and keys pushed into the user's terminal. It names what is refused, and a
//! refused call fails with EPERM: a list of what is allowed would end sessions whenever a C library, or a newer
//! kernel's, makes another call than its author's did, and the calls that lead out of a process are few and known.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};

use crate::sys::{self, Landlocked};

/// What a session still needs once it has begun, besides what is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// Sockets of UDP.
    Datagrams,
    /// Names that are looked up, and sockets of any kind: it forwards.
    Connections,
}

/// What became of the wish to be confined. A kernel that cannot is no reason to have no session.
#[derive(Debug)]
pub struct Confined {
    /// What Landlock keeps from this thread.
    pub files: io::Result<Landlocked>,
    /// Whether calls are refused to all threads.
    pub calls: Result<(), seccompiler::Error>,
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

/// Confines this process to what a session needs, for good: files for this thread, and those it starts, calls for
/// all threads.
pub fn confine(reach: Reach) -> Confined {
    let files = match reach {
        Reach::Datagrams => sys::landlock(),
        Reach::Connections => Ok(Landlocked::Nothing),
    };
    Confined { files, calls: refuse(reach) }
}

/// Has the kernel refuse what this reach leaves out, to all threads. It ends a process that makes a call of another
/// architecture (a 32-bit one).
fn refuse(reach: Reach) -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter_all_threads(&filter(reach)?)
}

/// Programs, and what is inside other processes.
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

/// What the kernel does for a process that no filter sees, and what no session has a use for.
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

/// Files by their names, as Landlock has it for one thread, and what it does not know: modes, owners, dates.
const FILES: [c_long; 23] = [
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_truncate,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
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

/// The program that the kernel is to run for each call.
fn filter(reach: Reach) -> Result<BpfProgram, BackendError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    // Without a rule a call is refused whatever its arguments.
    let mut whole = |calls: &[c_long]| refused.extend(calls.iter().map(|call| (*call, vec![])));
    whole(&PROGRAMS);
    whole(&KERNEL);
    if reach == Reach::Datagrams {
        whole(&FILES);
        whole(&OLDER);
        // One of a pair that the kernel connects for us can be turned to a path.
        whole(&[libc::SYS_socketpair]);
        refused.insert(libc::SYS_socket, all_but_udp()?);
    }
    // The limits of another process; our own are number 0.
    refused.insert(libc::SYS_prlimit64, vec![each_of(0, SeccompCmpOp::Ne, &[0])?]);
    let pushing = PUSHING.map(|request| each_of(1, SeccompCmpOp::Eq, &[request]));
    refused.insert(libc::SYS_ioctl, pushing.into_iter().collect::<Result<_, _>>()?);
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

/// Sockets of another family than IP's, of another type than datagrams, and of another protocol than UDP.
fn all_but_udp() -> Result<Vec<SeccompRule>, BackendError> {
    let families = [libc::AF_INET, libc::AF_INET6];
    let flags =
        [0, libc::SOCK_CLOEXEC, libc::SOCK_NONBLOCK, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK];
    let types = flags.map(|flags| libc::SOCK_DGRAM | flags);
    let numbers = |words: &[i32]| -> Vec<u64> {
        words.iter().map(|word| (*word).unsigned_abs().into()).collect()
    };
    let (families, types) = (numbers(&families), numbers(&types));
    let protocols = numbers(&[0, libc::IPPROTO_UDP]);
    let all = [families, types, protocols];
    (0..).zip(&all).map(|(index, words)| each_of(index, SeccompCmpOp::Ne, words)).collect()
}

/// That an argument stands in this relation to each of these values. The kernel looks at 32 bits of such arguments.
fn each_of(index: u8, relation: SeccompCmpOp, values: &[u64]) -> Result<SeccompRule, BackendError> {
    let condition = |value: &u64| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, relation.clone(), *value)
    };
    SeccompRule::new(values.iter().map(condition).collect::<Result<_, _>>()?)
}
